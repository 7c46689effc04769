package kvoracle_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/lab/kvoracle"
)

// TestScheduler judges the scheduler by itself, with keys moved at random all the
// time: both modes, numbers of partitions, bounds of the queues and placements.
func TestScheduler(t *testing.T) {
	seed := uint64(0)
	for _, mode := range []sched.Mode{sched.Callers, sched.Workers, sched.Threads} {
		for _, partitions := range []int{1, 2, 4, 7} {
			for _, queue := range []int{1, 2, 8, 1 << 16} {
				if mode == sched.Callers && queue > 1 {
					continue
				}
				seed++
				t.Run(fmt.Sprintf("mode %d, %d partitions, queue %d", mode, partitions, queue), func(t *testing.T) {
					d, err := kvoracle.NewDirect(sched.Options[[]byte]{
						Partitions: partitions, Mode: mode, Queue: queue, Place: sched.Placement(seed % 3),
						Early: sched.Early{Mode: early.Modes()[seed%uint64(len(early.Modes()))], Threads: 1 + int(seed%3)},
					}, seed)
					if err != nil {
						t.Fatal(err)
					}
					l := kvoracle.New(d, kvoracle.Options{Seed: seed, Ops: 150, Deadlines: .1, Pipelines: mode != sched.Callers})
					if err := l.Fill(t.Context()); err != nil {
						t.Fatal(err)
					}
					for range 2 {
						if err := l.Round(t.Context()); err != nil {
							t.Fatalf("%.20000s", err)
						}
					}
					if err := l.Close(t.Context(), .5, nil); err != nil {
						t.Fatalf("%.20000s", err)
					}
					t.Logf("%+v", l.Stats)
				})
			}
		}
	}
}
