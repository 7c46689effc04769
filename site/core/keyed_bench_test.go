package core

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// templateCore is a core of a single site with a template "api" of buckets.
func templateCore(b *testing.B, terms rates.Terms, maxKeys int) *Core {
	b.Helper()
	c, err := New(Config{Self: "a", Members: []SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), MaxKeys: maxKeys}, stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "api", Generation: 1, Initial: 100, Limit: 100, Version: 1, Rate: stored.Rate{Terms: terms}}},
		Books:     []stored.Books{{Name: "api", Generation: 1, Left: 100}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// heapInUse is the memory in use, in bytes.
func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkKeys measures an acquire of a key of a template, and the memory of a key: of a
// million keys that are all in use, with a Zipf distribution of acquires, and of ten
// million keys that come once each, in a table of two million.
func BenchmarkKeys(b *testing.B) {
	terms := rates.Terms{Kind: rates.Bucket, Count: 1, Unit: rates.Hour, Volatile: true, Keys: true}
	key := func(i uint64) string { return fmt.Sprintf("api/10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }
	acquire := func(b *testing.B, c *Core, now *input.Now, i, n uint64) (granted bool) {
		b.Helper()
		if n%100 == 0 {
			now.Tick++
		}
		c.Step(*now, &input.Acquire{Call: 1, Entity: key(i), Tokens: 1, Once: true})
		if n%100 == 0 {
			var out Effects
			c.Drain(&out)
			for _, r := range out.Replies {
				switch r.Answer.Code {
				case answer.OK:
					granted = true
				case answer.OutOfTokens:
				default:
					b.Fatalf("%+v", r.Answer)
				}
			}
		}
		return granted
	}
	b.Run("active=1000000", func(b *testing.B) {
		c, now := templateCore(b, terms, 2_000_000), &input.Now{Tick: 1, Wall: 1_700_000_000_000}
		acquire(b, c, now, 0, 1)
		now.Tick += 3_600_000
		before := heapInUse()
		for i := range uint64(1_000_000) {
			acquire(b, c, now, i, i)
		}
		bytes := (heapInUse() - before) / 1_000_000
		zipf := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 1, 999_999)
		names := make([]string, 1<<16)
		for i := range names {
			names[i] = key(zipf.Uint64())
		}
		b.ReportAllocs()
		b.ResetTimer()
		var out Effects
		for n := range b.N {
			if n%100 == 0 {
				now.Tick++
				c.Drain(&out)
				out.Reset()
			}
			c.Step(*now, &input.Acquire{Call: 1, Entity: names[n&(1<<16-1)], Tokens: 1, Once: true})
		}
		b.StopTimer()
		b.ReportMetric(bytes, "B/key")
	})
	b.Run("once=10000000", func(b *testing.B) {
		for range b.N {
			c, now := templateCore(b, terms, 2_000_000), &input.Now{Tick: 1, Wall: 1_700_000_000_000}
			acquire(b, c, now, 0, 1)
			now.Tick += 3_600_000
			before, most := heapInUse(), 0.0
			for i := range uint64(10_000_000) {
				acquire(b, c, now, i, i)
				if i%500_000 == 0 {
					most = max(most, heapInUse()-before)
				}
			}
			b.ReportMetric(most/1e6, "MB-at-most")
			b.ReportMetric(float64(c.space.keys), "keys")
		}
	})
}
