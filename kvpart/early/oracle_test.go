package early_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// draw makes random classes, and a random valid mapping of them.
func draw(rnd *rand.Rand, maxThreads int) (*early.Classes, *early.Mapping) {
	n := 1 + rnd.IntN(6)
	classes, err := early.NewClasses(n)
	if err != nil {
		panic(err)
	}
	density := rnd.Float64()
	for i := range n {
		for j := range i + 1 {
			if rnd.Float64() < density {
				classes.Conflict(i, j)
			}
		}
	}
	m := &early.Mapping{Threads: 1 + rnd.IntN(maxThreads), Of: make([]early.Assignment, n)}
	sets := make([]map[int]bool, n)
	for i := range n {
		a := &m.Of[i]
		a.Sequential = classes.Conflicts(i, i) || rnd.IntN(2) == 0
		for j := range i {
			a.Sequential = a.Sequential || classes.Conflicts(i, j) && !m.Of[j].Sequential
		}
		sets[i] = map[int]bool{rnd.IntN(m.Threads): true}
		for t := range m.Threads {
			if rnd.IntN(3) == 0 {
				sets[i][t] = true
			}
		}
	}
	for i := range n {
		for j := range n {
			if !classes.Conflicts(i, j) || !m.Of[i].Sequential {
				continue
			}
			if !m.Of[j].Sequential {
				for t := range sets[j] { // R4
					sets[i][t] = true
				}
			}
		}
	}
	for i := range n {
		for j := range i {
			if classes.Conflicts(i, j) && m.Of[i].Sequential && m.Of[j].Sequential {
				t := rnd.IntN(m.Threads) // R5
				sets[i][t], sets[j][t] = true, true
			}
		}
	}
	for i := range n {
		for t := range sets[i] {
			m.Of[i].Threads = append(m.Of[i].Threads, t)
		}
		slices.Sort(m.Of[i].Threads)
	}
	return classes, m
}

// history is what the oracle judges: when each request ran, by one clock, and what it saw.
type history struct {
	classes *early.Classes
	clock   atomic.Int64
	state   []uint64
	runs    []*run
}

// run is a request. It reads the state of the classes that it conflicts with, and writes
// its own if it conflicts with its class.
type run struct {
	of         *history
	id, class  int
	spin       int
	times      int
	start, end int64
	saw        uint64
}

func (h *history) apply(r *run) uint64 {
	saw := uint64(r.id)*0x9e3779b97f4a7c15 + 1
	for d := range h.state {
		if h.classes.Conflicts(r.class, d) {
			saw = (saw ^ h.state[d]) * 0x100000001b3
		}
	}
	if h.classes.Conflicts(r.class, r.class) {
		h.state[r.class] = saw
	}
	return saw
}

// Run implements early.Job.
func (r *run) Run(int) {
	r.start = r.of.clock.Add(1)
	r.times++
	r.saw = r.of.apply(r)
	for range r.spin {
		r.of.clock.Load()
	}
	r.end = r.of.clock.Add(1)
}

// judge reports how the history breaks the rules.
func (h *history) judge() error {
	replay := &history{classes: h.classes, state: make([]uint64, len(h.state))}
	last := make([]int64, len(h.state)) // the latest end of each class
	for i, r := range h.runs {
		switch {
		case r.times != 1:
			return fmt.Errorf("request %d ran %d times", i, r.times)
		case r.saw != replay.apply(r):
			return fmt.Errorf("request %d of class %d saw another state than in a sequential run", i, r.class)
		}
		for d := range last {
			if h.classes.Conflicts(d, r.class) && last[d] > r.start {
				return fmt.Errorf("request %d of class %d began before an earlier one of class %d had ended", i, r.class, d)
			}
		}
		last[r.class] = max(last[r.class], r.end)
	}
	if !slices.Equal(h.state, replay.state) {
		return fmt.Errorf("the final state is not that of a sequential run")
	}
	return nil
}

// try runs a random trace in a mode, and judges it.
func try(seed uint64, mode early.Mode, requests int) error {
	rnd := rand.New(rand.NewPCG(seed, uint64(mode)))
	classes, mapping := draw(rnd, 6)
	h := &history{classes: classes, state: make([]uint64, classes.Len())}
	weights := make([]float64, classes.Len())
	for i := range weights {
		weights[i] = rnd.ExpFloat64()
	}
	for i := range requests {
		r := &run{of: h, id: i, spin: rnd.IntN(4) * rnd.IntN(100)}
		at := rnd.Float64() * sum(weights)
		for at -= weights[0]; at > 0 && r.class < len(weights)-1; at -= weights[r.class] {
			r.class++
		}
		h.runs = append(h.runs, r)
	}
	s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping, Queue: 1 + rnd.IntN(40)})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		for _, r := range h.runs {
			s.Submit(r.class, r)
		}
		s.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		panic(fmt.Sprintf("seed %d, mode %v: no end after 60 s", seed, mode))
	}
	if got := s.Stats().Ran; got != int64(requests) {
		return fmt.Errorf("%d of %d requests counted", got, requests)
	}
	return h.judge()
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// TestOrder runs random traces of random classes on random mappings in all modes, and
// judges the order of conflicting requests, what they saw, and the final state. With
// EARLY_SECONDS it goes on for so long in each mode, from seed EARLY_FIRST on.
func TestOrder(t *testing.T) {
	seeds, first := 60, uint64(1)
	long, _ := strconv.Atoi(os.Getenv("EARLY_SECONDS"))
	if at, err := strconv.ParseUint(os.Getenv("EARLY_FIRST"), 10, 64); err == nil {
		first = at
	}
	for _, mode := range early.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			n, until := 0, time.Now().Add(time.Duration(long)*time.Second)
			for ; n < seeds || time.Now().Before(until); n++ {
				seed := first + uint64(n)
				if err := try(seed, mode, 400); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			t.Logf("%d seeds", n)
		})
	}
}

// TestOneAtATime submits each request after the end of the one before: a thread that
// misses the request while it parks would sleep for ever.
func TestOneAtATime(t *testing.T) {
	for _, mode := range early.Modes() {
		if !t.Run(mode.String(), func(t *testing.T) {
			classes, mapping, err := early.Shards(2, 2)
			if err != nil {
				t.Fatal(err)
			}
			s, err := early.New(early.Options{Mode: mode, Classes: classes, Mapping: mapping})
			if err != nil {
				t.Fatal(err)
			}
			done := make(signal)
			rnd := rand.New(rand.NewPCG(1, uint64(mode)))
			for i := range 3000 {
				s.Submit(rnd.IntN(classes.Len()), done)
				select {
				case <-done:
				case <-time.After(10 * time.Second):
					t.Fatalf("request %d has not run within 10 s", i)
				}
				for range rnd.IntN(2000) {
					s.Stats() // time to park
				}
			}
			s.Close()
		}) {
			return // waiting takes long
		}
	}
}

// signal is a job that tells its end.
type signal chan struct{}

// Run implements early.Job.
func (s signal) Run(int) { s <- struct{}{} }
