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
		0: overloadUnsaid, -time.Hour: overloadUnsaid, time.Hour: maxOverload, 1: minOverload, 2 * time.Second: 2 * time.Second,
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

// TestMeasuredAtOnce: a round trip too short to be measured counts, and the next is
// averaged with it.
func TestMeasuredAtOnce(t *testing.T) {
	var h Health
	if h.Answered(0); h.RTT != 1 {
		t.Errorf("after a round trip of 0: %+v", h)
	}
	if h.Answered(1001); h.RTT != 301 {
		t.Errorf("after one of 1001ns: %+v", h)
	}
}

// TestOverloadOutlivesProbes: a server that answers probes is still left alone for
// as long as it asked for. The last answer counts, and a connection that broke ends it.
func TestOverloadOutlivesProbes(t *testing.T) {
	now := time.Unix(0, 0)
	var h Health
	h.Answered(time.Millisecond)
	h.Refused(now, 4*time.Second)
	h.Answered(time.Millisecond)
	h.Late()
	if h.Reach != Up || !h.Overloaded(now.Add(3*time.Second)) {
		t.Errorf("after probes: %+v", h)
	}
	if h.Refused(now, time.Second); h.Overloaded(now.Add(2 * time.Second)) {
		t.Errorf("after a shorter time was asked for: %+v", h)
	}
	if h.Broken(); h != (Health{Reach: Down}) {
		t.Errorf("after a connection that broke: %+v", h)
	}
}
