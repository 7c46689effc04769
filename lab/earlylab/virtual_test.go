package earlylab

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// plain are costs that are easy to add up.
var plain = Costs{
	Append: 10, Scan: 1, Drain: 10, DrainEach: 1, Next: 1, Mark: .5, Enter: 10, Leave: 10, Arrive: 5, Watch: 2, Start: 3, Finish: 3, Open: 4,
	Seek: 2, Rob: 10, RobEach: 1, Plunder: 1, Restore: 4, Add: 20, Take: 10, End: 10, Compare: 1,
	Transfer: 20, Wake: 1000, Handover: 5000, Yield: 50,
}

var allWaits = []Waits{SpinThenPark, ParkAtMeetings, SpinLonger}

// TestVirtual runs all modes: each request runs once, after the earlier ones that conflict
// with it, a thread takes a step at a time, and equal runs are equal.
func TestVirtual(t *testing.T) {
	for _, shape := range []struct{ shards, threads, queue int }{{1, 1, 4}, {1, 4, 2}, {3, 2, 8}} {
		for _, mode := range early.Modes() {
			for _, waits := range allWaits {
				t.Run(fmt.Sprintf("%d×%d/%v/%d", shape.shards, shape.threads, mode, waits), func(t *testing.T) {
					o := Default()
					o.Shards, o.Threads, o.Queue, o.Writes, o.Global, o.Skew, o.Requests = shape.shards, shape.threads, shape.queue, .2, .1, .3, 400
					o.Now = time.Now
					classes, _, err := o.mapping()
					if err != nil {
						t.Fatal(err)
					}
					trace := o.trace(o.Seed)
					from, to := make([]float64, len(trace)), make([]float64, len(trace))
					ran := make([]int, len(trace))
					clocks := make([]float64, o.Shards*o.Threads+1)
					v := &Virtual{Mode: mode, Waits: waits, Costs: plain, Work: Work{Read: 100, Write: 200, Element: 1}}
					v.Observe = func(thread int, began, ended float64, s *early.Taken) {
						if began < clocks[thread] || ended < began {
							t.Fatalf("thread %d steps from %v to %v, after %v", thread, began, ended, clocks[thread])
						}
						clocks[thread] = ended
						if s.Kind == early.StepStart {
							i := int(s.Job.(mute))
							ran[i]++
							from[i], to[i] = began, ended
						}
					}
					first, err := o.Virtual(t.Context(), v)
					if err != nil {
						t.Fatal(err)
					}
					for i := range trace {
						if ran[i] != 1 {
							t.Fatalf("request %d ran %d times", i, ran[i])
						}
						for j := range i {
							if classes.Conflicts(trace[j].class, trace[i].class) && from[i] < to[j] {
								t.Fatalf("request %d began at %v, before %d ended at %v", i, from[i], j, to[j])
							}
						}
					}
					v.Observe = nil
					second, err := o.Virtual(t.Context(), v)
					if err != nil || !reflect.DeepEqual(first, second) {
						t.Errorf("%+v, then %+v: %v", first, second, err)
					}
					v.Single = true
					single, err := o.Virtual(t.Context(), v)
					if err != nil || single.Nanos < float64(o.Requests)*single.Ran {
						t.Errorf("a request at a time: %+v: %v", single, err)
					}
				})
			}
		}
	}
}

// TestFreeSteps: all requests run as well where a step costs nothing, as one measured on a busy
// machine may: with all steps free, and each by itself.
func TestFreeSteps(t *testing.T) {
	measured := Costs{
		Append: 30, Scan: 2, Drain: 29, Next: 5.8, Mark: 1.4, Enter: 16, Leave: 13, Arrive: 11, Watch: 5, Start: 5, Finish: 7.6, Open: 33,
		Seek: 6, Rob: 39, Plunder: 3.9, Restore: 16, Add: 77, Take: 32, End: 65, Compare: 1, Transfer: 82, Wake: 23_000, Handover: 169_000, Yield: 456,
	}
	costs := []Costs{{}}
	for i := range reflect.TypeFor[Costs]().NumField() {
		c := measured
		reflect.ValueOf(&c).Elem().Field(i).SetFloat(0)
		costs = append(costs, c)
	}
	o := Default()
	o.Shards, o.Threads, o.Writes, o.Requests = 1, 8, .01, 400
	for _, c := range costs {
		for _, mode := range early.Modes() {
			for _, waits := range allWaits {
				if _, err := o.Virtual(t.Context(), &Virtual{Mode: mode, Waits: waits, Costs: c, Work: Work{Read: 100, Write: 200}}); err != nil {
					t.Errorf("%v, %d, %+v: %v", mode, waits, c, err)
				}
			}
		}
	}
}

// TestVirtualByHand is a read, a write and a read on two threads, whose times are added up
// in the comments.
func TestVirtualByHand(t *testing.T) {
	classes, mapping, err := early.Shards(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	trace := []*request{{class: 0, n: 1}, {class: 1, n: 1, write: true}}
	c := Costs{Append: 10, Drain: 20, Next: 1, Mark: 1, Arrive: 5, Watch: 2, Start: 3, Finish: 7, Open: 4, Scan: 1, Transfer: 100}
	v := &Virtual{Mode: early.BusyWait, Waits: SpinLonger, Costs: c, Work: Work{Read: 1000, Write: 2000}}
	v.Costs.Handover = 1e6
	type ran struct {
		thread   int
		from, to float64
	}
	var got []ran
	v.Observe = func(thread int, from, to float64, s *early.Taken) {
		if s.Kind == early.StepStart {
			got = append(got, ran{thread, from, to})
		}
	}
	if _, err := v.play(t.Context(), classes, mapping, 64, trace); err != nil {
		t.Fatal(err)
	}
	// At 0 thread 0 looks at its queue: a line that nobody has, 100, then 20. Nothing is
	// there, so the thread looks each 120. Thread 1 does the same.
	// At 0, but after the threads, the producer appends the read to queue 0. The lock is
	// taken until 120, the line moves, 220, and the append ends at 230. The line that
	// thieves look at costs 100: 330. The first look after that is at 120+2*120 = 360.
	// Thread 0 drains from 360: the producer has taken queue 0 again, for the write, until
	// 340 as the line is at hand. The move is 100, the drain 20, and the line for thieves
	// 100, so it ends at 580. It has both requests: a look ends at 581, and the read starts.
	// It ends at 581+3+1000 = 1584.
	// After the finish the counter's line is fetched, 100, and changed, 7: 1691. A look,
	// 1692; the marks of two thieves, 2, without a line to fetch: 1694. Thread 1 has
	// arrived long since. The counter is fetched and changed, 105: 1799. Thread 0 is the
	// last, and starts the write, which ends at 1799+3+2000 = 3802.
	want := []ran{{0, 581, 1584}, {0, 1799, 3802}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

// TestVirtualCosts: dearer wakes make meetings slower, where threads park at once, and do
// not change counters that threads watch.
func TestVirtualCosts(t *testing.T) {
	o := Default()
	o.Shards, o.Threads, o.Writes, o.Requests = 1, 8, .5, 300
	rate := func(mode early.Mode, wake float64) float64 {
		c := plain
		c.Wake, c.Handover = wake, 5*wake
		p, err := o.Virtual(t.Context(), &Virtual{Mode: mode, Waits: ParkAtMeetings, Costs: c, Work: Work{Read: 500, Write: 500}})
		if err != nil {
			t.Fatal(err)
		}
		return p.Rate
	}
	if cheap, dear := rate(early.Barriers, 100), rate(early.Barriers, 10_000); dear > cheap/3 {
		t.Errorf("meetings: %.0f requests/s with cheap wakes, %.0f with dear ones", cheap, dear)
	}
	if cheap, dear := rate(early.BusyWait, 100), rate(early.BusyWait, 10_000); dear < cheap/2 {
		t.Errorf("counters: %.0f requests/s with cheap wakes, %.0f with dear ones", cheap, dear)
	}
	if one, many := rate(early.BusyWait, 100), rate(early.Late, 100); one <= 0 || many <= 0 {
		t.Error("no rate")
	}
}

func TestVirtualFails(t *testing.T) {
	o := Default()
	o.Requests = 200_000
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := o.Virtual(ctx, &Virtual{Mode: early.BusyWait, Costs: plain}); !errors.Is(err, gone) {
		t.Errorf("after the end: %v", err)
	}
	o.Shards = 0
	if _, err := o.Virtual(t.Context(), &Virtual{Costs: plain}); !errors.Is(err, ErrOptions) {
		t.Errorf("no shard: %v", err)
	}
}

// TestWakeOnOneCore: wakes whose goroutine ran before they returned count for nothing,
// however many of them a busy machine shows.
func TestWakeOnOneCore(t *testing.T) {
	c := &calibration{taken: make(map[string][]float64)}
	for range 100 {
		c.wake(15*time.Microsecond, 9*time.Microsecond)
	}
	for range 3 {
		c.wake(2*time.Microsecond, 62*time.Microsecond)
	}
	if wake, over := c.median("wake"), c.median("hand-over"); wake != 2000 || over != 60_000 {
		t.Errorf("a wake takes %v ns and %v ns until the goroutine runs, want 2000 and 60000", wake, over)
	}
}

// TestCalibrate: each cost is measured, and none is beyond reason.
func TestCalibrate(t *testing.T) {
	c, err := Calibrate(time.Now, 3)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		if f := v.Field(i).Float(); f < 0 || f > 1e9 {
			t.Errorf("%s is %v ns", v.Type().Field(i).Name, f)
		}
	}
	if c.Append <= 0 || c.Transfer <= 0 || c.Handover <= 0 {
		t.Errorf("%+v", c)
	}
	for _, app := range []string{List, KV} {
		o := Default()
		o.App, o.Now = app, time.Now
		if w := o.MeasureWork(50); w.Read < 0 || w.Write <= 0 || (w.Element > 0) != (app == List) {
			t.Errorf("%s: %+v", app, w)
		}
	}
}
