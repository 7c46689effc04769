package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// bump is a job that does next to nothing, started or waited for.
type bump struct {
	req  sched.Request[int64]
	busy atomic.Bool
}

func (j *bump) Run(r *sched.Request[int64]) { r.Entries()[0].Value++ }
func (j *bump) End(error)                   { j.busy.Store(false) }

// BenchmarkOf measures requests of 1 or 3 given entries on 4 partitions, by 1 and 2
// clients: Callers run them, Workers have up to 64 of each client started. Processor time
// per request on two cores (shared, with some four processes a core), in ns, as the least
// and the median of 6 runs; nothing is allocated:
//
//	                       1 client    2 clients
//	callers/one              35-40         40-61
//	callers/three-on-one     56-61         60-86
//	callers/three-on-two     75-85       112-150
//	workers/one            146-160       182-230
//	workers/three-on-one   217-249       240-286
//	workers/three-on-two   722-883      729-1080
func BenchmarkOf(b *testing.B) {
	for _, m := range []struct {
		name string
		mode sched.Mode
	}{{"callers", sched.Callers}, {"workers", sched.Workers}} {
		for _, c := range []struct {
			name       string
			n          int
			partitions int
		}{{"one", 1, 1}, {"three-on-one", 3, 1}, {"three-on-two", 3, 2}} {
			for _, clients := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/%d", m.name, c.name, clients), func(b *testing.B) {
					const parts = 4
					s, keys := fill(b, cached, sched.Options[int64]{Partitions: parts, Mode: m.mode, Place: sched.RoundRobin})
					var at [parts][]*entry
					for _, key := range keys {
						e := s.Entry(key)
						at[s.Partition(e)] = append(at[s.Partition(e)], e)
					}
					drive(b, clients, func(r *rand.Rand) func() error {
						drawn := make([][]*entry, 1<<12)
						for i := range drawn {
							p := r.IntN(parts)
							for n := range c.n {
								here := at[(p+n%c.partitions)%parts]
								drawn[i] = append(drawn[i], here[r.IntN(len(here))])
							}
						}
						jobs := make([]bump, 64)
						i := 0
						return func() error {
							i++
							entries := drawn[i%len(drawn)]
							if m.mode == sched.Callers {
								j := &jobs[0]
								j.req.Of(entries, sched.Alone, j)
								return s.Do(context.Background(), &j.req)
							}
							j := &jobs[i%len(jobs)]
							for j.busy.Load() {
								runtime.Gosched()
							}
							j.busy.Store(true)
							j.req.Of(entries, sched.Alone, j)
							err := s.TryStart(&j.req)
							if errors.Is(err, sched.ErrFull) {
								b.Error("the queue is full")
							}
							return err
						}
					})
				})
			}
		}
	}
}
