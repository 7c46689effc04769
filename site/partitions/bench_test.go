package partitions_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/partitions"
)

// flat are n entities without a parent, of limits that no benchmark reaches.
func flat(n int) (from stored.Restored, names []string) {
	from.Catalogue = &stored.Catalogue{Generation: uint64(n)} //nolint:gosec // small
	for i := range n {
		name := fmt.Sprintf("acme/%05d/vm", i)
		add(&from, name, 0)
		names = append(names, name)
	}
	return from, names
}

// add adds an entity below an earlier entity, 0 for none, and returns its generation.
func add(from *stored.Restored, name string, parent uint64) uint64 {
	g := uint64(len(from.Entities) + 1)
	from.Entities = append(from.Entities, stored.Entity{
		Name: name, Generation: g, Initial: input.MaxTokens, Limit: input.MaxTokens, Version: 1, Parent: parent,
	})
	from.Books = append(from.Books, stored.Books{Name: name, Generation: g, Left: input.MaxTokens})
	from.Catalogue.Generation = g
	return g
}

// bench makes acquires of a core. Partitions serve all that they can.
type bench struct {
	core  *core.Core
	parts *partitions.Partitions
	names []string
	rnd   *rand.Rand
	now   input.Now
	ins   []input.Acquire
	out   core.Effects
}

func newBench(tb testing.TB, count int, from stored.Restored, names []string) *bench {
	tb.Helper()
	c, err := core.New(core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 10_000}, from)
	if err != nil {
		tb.Fatal(err)
	}
	x := &bench{core: c, names: names, rnd: rand.New(rand.NewPCG(3, 4)), now: input.Now{Tick: 1, Wall: 1_700_000_000_000}, ins: make([]input.Acquire, 100)}
	if count > 0 {
		began := time.Now()
		x.parts, err = partitions.New(partitions.Options{
			Core: c, Count: count, Clock: func() time.Duration { return time.Since(began) }, Policy: new(control.Policy),
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(x.parts.Close)
	}
	x.run(tb, 200_000)
	return x
}

func (x *bench) run(tb testing.TB, n int) {
	tb.Helper()
	for done := 0; done < n; done += len(x.ins) {
		x.now.Tick++
		x.now.Wall++
		for i := range x.ins {
			in := &x.ins[i]
			*in = input.Acquire{Entity: x.names[x.rnd.IntN(len(x.names))], Tokens: 1}
			binary.BigEndian.PutUint64(in.Request[:], x.rnd.Uint64())
			if x.parts == nil {
				x.core.Step(x.now, in)
			} else if !x.parts.Serve(x.now, in) {
				x.parts.Alone(func() { x.core.Step(x.now, in) })
			}
		}
		if x.parts == nil {
			x.core.Drain(&x.out)
		} else {
			x.parts.Alone(func() { x.core.Drain(&x.out) })
		}
		if len(x.out.Replies) != len(x.ins) {
			tb.Fatalf("%d answers", len(x.out.Replies))
		}
		x.out.Reset()
	}
}

func processorTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkServe measures, in alternated rounds, an acquire that a partition serves and
// an acquire that the core is stepped with. The unit is processor time on a single
// goroutine.
func BenchmarkServe(b *testing.B) {
	for _, entities := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			from, names := flat(entities)
			step, serve := newBench(b, 0, from, names), newBench(b, 2, from, names)
			const rounds, perRound = 21, 30_000
			var ns [2][]float64
			var ratios []float64
			b.ResetTimer()
			for range b.N * rounds {
				for i, x := range []*bench{step, serve} {
					used := processorTime()
					x.run(b, perRound)
					ns[i] = append(ns[i], float64(processorTime()-used)/perRound)
				}
				last := len(ratios)
				ratios = append(ratios, ns[1][last]/ns[0][last])
			}
			b.StopTimer()
			if st := serve.parts.Stats(); st.Passed*100 > st.Served {
				b.Fatalf("%d served, %d passed", st.Served, st.Passed)
			}
			for unit, of := range map[string][]float64{"step-ns/op": ns[0], "serve-ns/op": ns[1], "ratio": ratios} {
				slices.Sort(of)
				b.ReportMetric(of[len(of)/2], unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
