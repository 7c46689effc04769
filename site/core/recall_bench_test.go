package core

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// BenchmarkRemember measures the table of requests: a search for a new key, its record,
// and to forget an old record. Most of it is the wait for uncached memory. On 2 cores kept
// busy by other work it took .2 µs among a million records, .35 among five million.
func BenchmarkRemember(b *testing.B) {
	for _, records := range []int{1_000_000, 5_000_000, 15_000_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			const perBlock = 100
			table := newRequestTable(1<<30, session.MaxOpen)
			rnd := rand.New(rand.NewPCG(1, 2))
			block := stored.Block{Records: make([]stored.Request, perBlock)}
			now := input.Now{Tick: 1, Wall: 1}
			run := func(n int) {
				for done := 0; done < n; done += perBlock {
					now.Tick++
					for i := range block.Records {
						r := &block.Records[i]
						binary.LittleEndian.PutUint64(r.Key[:], rnd.Uint64())
						if _, found := table.find(r.Key); !found {
							table.add(r, portion.Nobody)
						}
					}
					table.seal(&block, now)
					table.expire(now.Tick, Tick(records/perBlock), forgetMost+2*perBlock)
				}
			}
			run(records + records/10)
			b.ReportAllocs()
			b.ResetTimer()
			run(b.N)
			b.ReportMetric(float64(table.allocated())/float64(table.len()), "bytes/record")
		})
	}
}
