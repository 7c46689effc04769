package health

import (
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	var h Health
	h.Answered(100 * time.Millisecond)
	h.Answered(200 * time.Millisecond)
	if h.Reach != Up || h.RTT != 130*time.Millisecond {
		t.Errorf("after two answers: %+v", h)
	}
	h.Late()
	if h.Reach != Up {
		t.Error("down after one late probe")
	}
	h.Answered(130 * time.Millisecond)
	h.Late()
	if h.Reach != Up {
		t.Error("late probes apart count together")
	}
	h.Late()
	if h.Reach != Down || h.RTT != 0 {
		t.Errorf("after two late probes: %+v", h)
	}
}

func TestRefused(t *testing.T) {
	now := time.Unix(0, 0)
	for asked, want := range map[time.Duration]time.Duration{
		0: overloadUnsaid, time.Hour: maxOverload, 1: minOverload, 2 * time.Second: 2 * time.Second,
	} {
		var h Health
		if h.Refused(now, asked); h.OverloadedUntil.Sub(now) != want {
			t.Errorf("asked to stay away for %v, stays %v", asked, h.OverloadedUntil.Sub(now))
		}
		if !h.Overloaded(now) || h.Overloaded(now.Add(want)) {
			t.Errorf("asked to stay away for %v: overloaded %v, and at the end %v", asked, h.Overloaded(now), h.Overloaded(now.Add(want)))
		}
	}
}
