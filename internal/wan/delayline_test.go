package wan_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

// arrival is a value and how long after the start it was delivered.
type arrival struct {
	value int
	after time.Duration
}

// recorder notes the values that a line delivers.
type recorder struct {
	began    time.Time
	mu       sync.Mutex
	arrivals []arrival
}

func (r *recorder) deliver(v int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, arrival{v, time.Since(r.began)})
}

func (r *recorder) check(t *testing.T, want ...arrival) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.arrivals, want) {
		t.Errorf("arrived %v, want %v", r.arrivals, want)
	}
}

func TestDelayLineKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{began: time.Now()}
		line := wan.NewDelayLine(10, r.deliver)
		defer line.Close()
		for i, delay := range []time.Duration{20 * ms, 50 * ms, 10 * ms, 0, 60 * ms, -time.Hour} {
			if !line.Send(i, delay) {
				t.Fatalf("value %d was refused", i)
			}
		}
		if n := line.Len(); n != 6 {
			t.Errorf("%d under way, want 6", n)
		}
		<-time.After(time.Second)
		// Sent while the line is idle.
		line.Send(6, 5*ms)
		<-time.After(time.Second)
		r.check(t, arrival{0, 20 * ms}, arrival{1, 50 * ms}, arrival{2, 50 * ms}, arrival{3, 50 * ms},
			arrival{4, 60 * ms}, arrival{5, 60 * ms}, arrival{6, 1005 * ms})
		if n := line.Len(); n != 0 {
			t.Errorf("%d under way, want none", n)
		}
	})
}

func TestDelayLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{began: time.Now()}
		line := wan.NewDelayLine(2, r.deliver)
		defer line.Close()
		for i, want := range []bool{true, true, false} {
			if got := line.Send(i, 10*ms); got != want {
				t.Errorf("Send(%d) = %v", i, got)
			}
		}
		<-time.After(20 * ms)
		if !line.Send(3, 10*ms) {
			t.Error("refused on a line that is empty again")
		}
		<-time.After(time.Second)
		r.check(t, arrival{0, 10 * ms}, arrival{1, 10 * ms}, arrival{3, 30 * ms})
	})
}

// TestDelayLineSlowReceiver: a receiver that is slower than the sender holds up the
// values behind, never the sender.
func TestDelayLineSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{began: time.Now()}
		line := wan.NewDelayLine(10, func(v int) {
			r.deliver(v)
			<-time.After(100 * ms)
		})
		for i := range 3 {
			line.Send(i, 10*ms)
		}
		if d := time.Since(r.began); d != 0 {
			t.Errorf("sending took %v", d)
		}
		<-time.After(time.Second)
		line.Close()
		r.check(t, arrival{0, 10 * ms}, arrival{1, 110 * ms}, arrival{2, 210 * ms})
	})
}

func TestDelayLineClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{began: time.Now()}
		line := wan.NewDelayLine(10, r.deliver)
		line.Send(0, 10*ms)
		line.Send(1, time.Hour)
		<-time.After(20 * ms)
		line.Close()
		line.Close()
		if line.Send(2, 0) {
			t.Error("a closed line took a value")
		}
		if n := line.Len(); n != 0 {
			t.Errorf("%d under way on a closed line", n)
		}
		<-time.After(2 * time.Hour)
		r.check(t, arrival{0, 10 * ms})
	})
}

func TestDelayLineManySenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders, each = 8, 200
		var got []int
		line := wan.NewDelayLine(senders*each, func(v int) { got = append(got, v) })
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					line.Send(s*each+i, time.Duration(i%7)*ms)
				}
			})
		}
		wg.Wait()
		<-time.After(time.Second)
		line.Close()
		last := map[int]int{}
		for _, v := range got {
			if before, seen := last[v/each]; seen && v <= before {
				t.Fatalf("value %d of sender %d came after %d", v, v/each, before)
			}
			last[v/each] = v
		}
		if len(got) != senders*each {
			t.Errorf("%d values arrived, want %d", len(got), senders*each)
		}
	})
}
