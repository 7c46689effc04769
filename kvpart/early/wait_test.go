package early

import (
	"runtime"
	"testing"
)

// TestPatience: a thread that waits for others spins, yields and parks, and gives its
// place among the spinners back, whatever ends its spinning. Threads without work leave
// half of the processors to others.
func TestPatience(t *testing.T) {
	before := spinners.Load()
	defer spinners.Store(before)
	spinners.Store(-1) // a free place, also on a single processor
	var p patience
	until := func(o outcome) map[action]int {
		got := map[action]int{}
		for {
			a := p.after(o, false)
			got[a]++
			if a == goOn && spinners.Load() != 0 {
				t.Fatalf("%d spinners while one spins", spinners.Load()+1)
			}
			if a == block {
				return got
			}
		}
	}
	if got := until(waiting); got[goOn] != spins-1 || got[yield] != yields || spinners.Load() != -1 {
		t.Errorf("actions before parking: %v, %d spinners", got, spinners.Load()+1)
	}
	spinners.Store(int32(runtime.GOMAXPROCS(0) / 2)) // the places of those without work are taken
	if got := until(idle); got[goOn] != 0 || got[yield] != yieldsIdle || int(spinners.Load()) != runtime.GOMAXPROCS(0)/2 {
		t.Errorf("actions without work: %v, %d spinners", got, spinners.Load())
	}
	spinners.Store(-1)
	for _, o := range []outcome{moved, stopped} {
		p.after(waiting, false)
		if spinners.Load() != 0 {
			t.Errorf("a thread that waits does not spin")
		}
		if a := p.after(moved, true); a != goOn || spinners.Load() != 0 {
			t.Errorf("a look elsewhere ended the spinning")
		}
		if a := p.after(o, false); (a == end) != (o == stopped) || spinners.Load() != -1 {
			t.Errorf("outcome %d: action %d, %d spinners", o, a, spinners.Load()+1)
		}
		p = patience{}
	}
	spinners.Store(1 << 20)
	if a := p.after(waiting, false); a != yield || spinners.Load() != 1<<20 {
		t.Errorf("without a place: action %d, %d spinners", a, spinners.Load())
	}
}
