package early

import "testing"

// TestPatience: a thread spins, yields and parks, and gives its place among the spinners
// back, whatever ends its spinning.
func TestPatience(t *testing.T) {
	before := spinners.Load()
	defer spinners.Store(before)
	spinners.Store(-1) // a free place, also on a single processor
	var p patience
	got := map[action]int{}
	for {
		a := p.after(idle, false)
		got[a]++
		if a == goOn && spinners.Load() != 0 {
			t.Fatalf("%d spinners while one spins", spinners.Load()+1)
		}
		if a == block {
			break
		}
	}
	if got[goOn] != spins-1 || got[yield] != yields || spinners.Load() != -1 {
		t.Errorf("actions before parking: %v, %d spinners", got, spinners.Load()+1)
	}
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
	}
	spinners.Store(1 << 20)
	if a := p.after(idle, false); a != yield || spinners.Load() != 1<<20 {
		t.Errorf("without a place: action %d, %d spinners", a, spinners.Load())
	}
}
