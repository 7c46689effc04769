package partitions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

const wall = 1_700_000_000_000

// serving are partitions of a core with the given number of entities, e0 and so on.
func serving(t *testing.T, entities int, o Options) *Partitions {
	t.Helper()
	from := stored.Restored{Catalogue: &stored.Catalogue{Generation: uint64(entities)}} //nolint:gosec // small
	for i := range entities {
		name, g := fmt.Sprint("e", i), uint64(i+1) //nolint:gosec // small
		from.Entities = append(from.Entities, stored.Entity{Name: name, Generation: g, Initial: 1000, Limit: 1000, Version: 1})
		from.Books = append(from.Books, stored.Books{Name: name, Generation: g, Left: 1000})
	}
	c, err := core.New(core.Config{
		Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 10_000, Admission: "refuse",
	}, from)
	if err != nil {
		t.Fatal(err)
	}
	o.Core, o.Clock = c, func() time.Duration { return 0 }
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// acquire is a request for a token, with a number of its own.
func acquire(entity string, number byte) *input.Acquire {
	in := &input.Acquire{Entity: entity, Tokens: 1, Request: attempt.Key{number, 1}}
	in.Call = in
	return in
}

// TestServedIsSaidOfThisRequest: Serve reports false for a request that no partition
// serves, whatever it reported of the request before.
func TestServedIsSaidOfThisRequest(t *testing.T) {
	p := serving(t, 4, Options{Count: 2})
	now := input.Now{Tick: 1, Wall: wall}
	for n := range byte(50) {
		if !p.Serve(now, acquire("e1", n)) {
			t.Fatal("a request of an entity that is there was not served")
		}
		if p.Serve(now, acquire("none", n)) {
			t.Fatal("a request of an entity that is not there is said to be served")
		}
	}
	p.Alone(func() { p.Stepped(50) })
	if st := p.Stats(); st.Served != 50 || st.Passed != 50 {
		t.Errorf("%d served, %d passed", st.Served, st.Passed)
	}
}

// TestAloneLetsShardsServeAgain: partitions serve again after the core was stepped alone.
func TestAloneLetsShardsServeAgain(t *testing.T) {
	p := serving(t, 2, Options{Count: 2})
	now := input.Now{Tick: 1, Wall: wall}
	var out core.Effects
	p.Alone(func() {
		p.o.Core.Step(now, acquire("e0", 1))
		p.o.Core.Drain(&out)
	})
	if !p.Serve(now, acquire("e0", 2)) {
		t.Error("no partition serves after the core was stepped alone")
	}
}

// TestTimeInTheQueueCounts: a request is judged by the time at which it leaves its queue,
// not by its arrival.
func TestTimeInTheQueueCounts(t *testing.T) {
	now := input.Now{Tick: 1, Wall: wall}
	var passed []input.Input
	p := serving(t, 1, Options{
		Count: 2, Mode: sched.Manual, Now: func() input.Now { return now }, Pass: func(in input.Input) { passed = append(passed, in) },
	})
	in := acquire("e0", 1)
	in.NotAfter = wall + 5
	for _, step := range []struct {
		waits  int64
		passes int
	}{{4, 0}, {6, 1}} {
		passed = nil
		in.Request[1]++
		now.Wall = wall
		if !p.Serve(now, in) {
			t.Fatal("the request was not handed over")
		}
		now.Wall += step.waits
		for i := range 2 {
			p.Step(i)
		}
		if len(passed) != step.passes {
			t.Errorf("after %d ms in the queue of a request that has 5 it was passed on %d times", step.waits, len(passed))
		}
	}
}

// TestFullUntilDrained: a partition that has served its part is full until it is drained,
// and then again.
func TestFullUntilDrained(t *testing.T) {
	const most = 10 // each of two partitions takes a half, and a request more
	p := serving(t, 1, Options{Count: 2, Most: most})
	number := byte(0)
	for range 3 {
		for n := range most/2 + 1 {
			if p.Full() || p.Gathered() != n {
				t.Errorf("full after %d requests, %d gathered", n, p.Gathered())
			}
			number++
			if !p.Serve(input.Now{Tick: 1, Wall: wall}, acquire("e0", number)) {
				t.Fatal("a request was not served")
			}
		}
		if !p.Full() {
			t.Errorf("not full after %d requests", most/2+1)
		}
		p.Alone(func() {
			p.o.Core.Drain(new(core.Effects))
			p.Drained()
		})
	}
}

// TestSplitEntitiesAreNotAssigned: a split entity counts as gone in the assignment of
// entities, and as back once it is whole.
func TestSplitEntitiesAreNotAssigned(t *testing.T) {
	p := serving(t, 1, Options{Count: 2})
	b := &balance{Scheduler: p.sched}
	var got []bool
	for _, on := range []bool{false, true, false} {
		p.Alone(func() { p.Split("e0", on) })
		_, gone, _ := b.Look(p.sched.Entry("e0"))
		got = append(got, gone)
	}
	if !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("whole, split and whole again it is gone: %v", got)
	}
}

// TestEntitiesOfOnePartition: a partition that callers run counts the entities that come
// and go.
func TestEntitiesOfOnePartition(t *testing.T) {
	p := serving(t, 3, Options{Count: 1})
	for _, want := range []int{3, 2, 1} {
		if n := p.Stats().Partitions[0].Entities; n != want {
			t.Errorf("%d entities, want %d", n, want)
		}
		p.Gone(nil) // there is no entry of it
	}
}
