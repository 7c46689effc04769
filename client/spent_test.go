package client

import (
	"testing"
	"time"

	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
)

// TestSpent: no attempt is made past the last number, or once no site may run it. A
// clock that steps back makes the time of a request no later, whatever it is by then.
func TestSpent(t *testing.T) {
	now := time.Unix(1_700_000_000, 123_456_789)
	m := newAcquire("e", 1, nil)
	m.expire(now, time.Minute)
	// Sites count whole milliseconds: a repeat has to tell the very same time.
	end := time.Unix(1_700_000_060, 123_000_000)
	if !m.notAfter.Equal(end) {
		t.Fatalf("it ends at %v", m.notAfter)
	}
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		if m.expire(now.Add(step), 2*time.Minute); !m.notAfter.Equal(end) {
			t.Errorf("looked at %v later it ends at %v", step, m.notAfter)
		}
	}
	for at, spent := range map[time.Time]bool{now: false, end: false, end.Add(time.Nanosecond): true, end.Add(time.Hour): true} {
		if m.spent(at) != spent {
			t.Errorf("at %v it is spent: %v", at, !spent)
		}
	}
	for m.attempt < name.MaxAttempt {
		m.judge(nil, mux.Lost, errReset, "us")
	}
	if m.spent(now) {
		t.Errorf("attempt %d may not be made", m.attempt)
	}
	if m.judge(nil, mux.Lost, errReset, "us"); !m.spent(now) {
		t.Errorf("attempt %d may be made, the last is %d", m.attempt, uint32(name.MaxAttempt))
	}
}
