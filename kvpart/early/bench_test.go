package early_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/kvpart/early"
)

// nothing is a job without work.
type nothing struct{}

// Run implements early.Job.
func (nothing) Run(int) {}

// BenchmarkSynchronised measures the cost of a request that all threads of its class wait
// for: with meetings (barriers), and with a counter (busy-wait).
func BenchmarkSynchronised(b *testing.B) {
	for _, threads := range []int{2, 4, 8, 16, 32} {
		for _, mode := range []early.Mode{early.Barriers, early.BusyWait} {
			b.Run(fmt.Sprintf("threads=%d/%v", threads, mode), func(b *testing.B) {
				classes, err := early.NewClasses(1)
				if err != nil {
					b.Fatal(err)
				}
				classes.Conflict(0, 0)
				all := make([]int, threads)
				for i := range all {
					all[i] = i
				}
				mapping := &early.Mapping{Threads: threads, Of: []early.Assignment{{Sequential: true, Threads: all}}}
				s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					s.Submit(0, nothing{})
				}
				s.Close()
			})
		}
	}
}

// BenchmarkConcurrent measures the cost of a request without conflicts: handed to its
// thread's queue, or stolen from there if all requests go to a single thread.
func BenchmarkConcurrent(b *testing.B) {
	for _, mode := range []early.Mode{early.BusyWait, early.Optimistic} {
		for _, skewed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/skewed=%v", mode, skewed), func(b *testing.B) {
				classes, err := early.NewClasses(2)
				if err != nil {
					b.Fatal(err)
				}
				mapping := &early.Mapping{Threads: 2, Of: []early.Assignment{{Threads: []int{0, 1}}, {Threads: []int{0}}}}
				s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping, Queue: 64})
				if err != nil {
					b.Fatal(err)
				}
				class := 0
				if skewed {
					class = 1
				}
				for b.Loop() {
					s.Submit(class, nothing{})
				}
				s.Close()
				b.ReportMetric(float64(s.Stats().Stolen)/float64(s.Stats().Ran), "stolen/op")
			})
		}
	}
}
