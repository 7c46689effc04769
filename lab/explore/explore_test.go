package explore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	_ "github.com/samya-db/samya/internal/testheap"
)

func bounds(t *testing.T, name string) Bounds {
	t.Helper()
	b, err := BoundsByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t *testing.T, v Variant, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), v, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSmallBoundsClose(t *testing.T) {
	b := bounds(t, "small")
	options := Options{Bounds: b, HealEvery: 20, HealMost: 5000}
	r := run(t, NewMajority(b), options)
	if r.Violations != 0 || !r.Closed {
		t.Fatalf("not closed without violation:\n%v", r)
	}
	if r.States < 40_000 || r.Healed < 1000 {
		t.Errorf("the search became trivial: %d states, %d healed", r.States, r.Healed)
	}
	again := run(t, NewMajority(b), options)
	if r.States != again.States || r.Transitions != again.Transitions || r.Depth != again.Depth || r.Steps != again.Steps {
		t.Errorf("a second search differs:\n%v\n%v", r, again)
	}
}

func TestStops(t *testing.T) {
	b := bounds(t, "default")
	r := run(t, NewMajority(b), Options{Bounds: b, MaxStates: 2000})
	if r.Closed || r.States < 2000 || r.States > 3000 {
		t.Errorf("at 2000 states: closed %v with %d", r.Closed, r.States)
	}
	if !strings.Contains(r.String(), "NOT CLOSED") {
		t.Errorf("the summary hides it: %v", r)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Run(ctx, NewMajority(b), Options{Bounds: b}); !errors.Is(err, why) {
		t.Errorf("a cancelled search returns %v, want %v", err, why)
	}
}

// TestFindsDamage restarts sites with less than their durable state, each time without
// something that a rule of docs/protocol.md needs.
func TestFindsDamage(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(*avantan.State)
		want   string
	}{
		{"built", func(s *avantan.State) { s.Built = false }, Exposure},
		{"exposures", func(s *avantan.State) {
			s.Exposures = s.Exposures[max(0, len(s.Exposures)-1):]
		}, Exposure},
		{"accept", func(s *avantan.State) { s.Accepted, s.AcceptedAt = nil, avantan.Ballot{} }, Agreement},
		{"kept", func(s *avantan.State) { s.Kept = nil }, Integrity},
		{"applied", func(s *avantan.State) { s.Applied = 0 }, Integrity},
		{"promise", func(s *avantan.State) { s.Promised = s.AcceptedAt }, Agreement},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bounds(t, "small")
			v := NewMajority(b)
			v.damage = test.damage
			r := run(t, v, Options{Bounds: b, Ignore: []string{SelfCheck}})
			if !slices.ContainsFunc(r.Broken, func(v Violation) bool { return v.Invariant == test.want }) {
				t.Fatalf("broken are %v, want %s; %d states", r.Broken, test.want, r.States)
			}
			if !slices.ContainsFunc(r.Trace, func(line string) bool { return strings.Contains(line, actCrash) }) {
				t.Errorf("the schedule has no crash:\n%s", strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// TestTrace checks the schedule of a violation: from the start, each step with its
// messages, and no step that leads nowhere.
func TestTrace(t *testing.T) {
	b := bounds(t, "small")
	v := NewMajority(b)
	v.damage = func(s *avantan.State) { s.Built = false }
	r := run(t, v, Options{Bounds: b})
	text := strings.Join(r.Trace, "\n")
	for _, want := range []string{"start: applied 0", actBegin, "sends to b Election[1] 1.a", "receives from a", "Abandon[1] 1.a"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "no step found") {
		t.Errorf("the schedule has a gap:\n%s", text)
	}
	if s := r.String(); !strings.Contains(s, "VIOLATION of "+Exposure) || !strings.Contains(s, r.Trace[0]) {
		t.Errorf("the summary does not tell it:\n%s", s)
	}
}

func TestBoundsValidate(t *testing.T) {
	for _, name := range BoundsNames() {
		if err := bounds(t, name).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := bounds(t, "small")
	b.Ballots = 0
	if err := b.Validate(); err == nil || !strings.Contains(err.Error(), "ballots is 0, must be 1 to") {
		t.Errorf("no ballots: %v", err)
	}
	if _, err := BoundsByName("huge"); err == nil {
		t.Error("unknown bounds are accepted")
	}
	if _, err := New("paxos", b); err == nil {
		t.Error("an unknown variant is accepted")
	}
}
