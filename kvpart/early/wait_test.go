package early

import "testing"

// TestNobodySpinsAfterTheEnd: threads that end while they spin give their place back, so
// that the threads of later schedulers may spin.
func TestNobodySpinsAfterTheEnd(t *testing.T) {
	classes, mapping, err := Shards(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		s, err := New(Options{Mode: BusyWait, Classes: classes, Mapping: mapping})
		if err != nil {
			t.Fatal(err)
		}
		for range i {
			s.Stats() // so that threads are at different places when they end
		}
		s.Close()
	}
	if n := spinners.Load(); n != 0 {
		t.Errorf("%d goroutines count as spinning after the end of all", n)
	}
}
