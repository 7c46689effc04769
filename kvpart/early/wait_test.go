package early

import "testing"

// TestPatience: a thread that waits for others spins, yields and parks, and gives its
// place among the spinners back, whatever ends its spinning. A thread without work does
// not spin.
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
	if got := until(idle); got[goOn] != 0 || got[yield] != yieldsIdle || spinners.Load() != -1 {
		t.Errorf("actions without work: %v, %d spinners", got, spinners.Load()+1)
	}
	for _, o := range []outcome{moved, stopped, idle} {
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
