package client

import (
	"testing"
	"testing/synctest"

	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// sequenceOf returns the session and the sequence of a request id.
func sequenceOf(t *testing.T, requestID string) (session.ID, uint64) {
	t.Helper()
	id, sequence, ok := session.Parse(requestID)
	if !ok {
		t.Fatalf("%q is of no session", requestID)
	}
	return id, sequence
}

// TestAcknowledgements: a request acknowledges the requests before the oldest that has no answer.
func TestAcknowledgements(t *testing.T) {
	var s sessions
	var tickets []ticket
	begin := func(want uint64) {
		t.Helper()
		id, acked, of := s.begin()
		if _, sequence := sequenceOf(t, id); sequence != uint64(len(tickets)) || acked != want {
			t.Fatalf("request %d has the id %s and acknowledges %d, want %d", len(tickets), id, acked, want)
		}
		tickets = append(tickets, of)
	}
	begin(0)
	begin(0)
	begin(0)
	s.end(tickets[1], true)
	begin(0)
	s.end(tickets[0], true)
	begin(2)
	s.end(tickets[3], true)
	begin(2)
	s.end(tickets[2], true)
	begin(4)
	for n := 4; n < 3*session.MaxOpen; n++ {
		s.end(tickets[n], true)
		begin(uint64(n) + 1)
	}
}

// TestSessionEnds: a request that may have been done and has no answer is never acknowledged, nor
// is a request after it: another session begins.
func TestSessionEnds(t *testing.T) {
	var s sessions
	first, _, lost := s.begin()
	_, _, answered := s.begin()
	s.end(answered, true)
	s.end(lost, false)
	next, acked, of := s.begin()
	was, _ := sequenceOf(t, first)
	if now, sequence := sequenceOf(t, next); now == was || sequence != 0 || acked != 0 {
		t.Errorf("%s is lost, and %s goes on, acknowledging %d", first, next, acked)
	}
	// What ends late in the old session changes nothing in the new.
	s.end(answered, false)
	s.end(of, true)
	again, acked, _ := s.begin()
	if was, _ := sequenceOf(t, next); acked != 1 {
		t.Errorf("%s acknowledges %d", again, acked)
	} else if now, sequence := sequenceOf(t, again); now != was || sequence != 1 {
		t.Errorf("%s follows %s", again, next)
	}
}

// TestSlowRequest: while a request has no answer, its session takes so many others. Then another
// session begins, which does not wait for the slow request.
func TestSlowRequest(t *testing.T) {
	var s sessions
	first, _, _ := s.begin()
	slow, _ := sequenceOf(t, first)
	for n := uint64(1); n < session.MaxOpen; n++ {
		id, acked, of := s.begin()
		if now, sequence := sequenceOf(t, id); now != slow || sequence != n || acked != 0 {
			t.Fatalf("request %d has the id %s and acknowledges %d", n, id, acked)
		}
		s.end(of, true)
	}
	for n := range uint64(10) {
		id, acked, of := s.begin()
		if now, sequence := sequenceOf(t, id); now == slow || sequence != n || acked != n {
			t.Fatalf("after so many, request %d has the id %s and acknowledges %d", n, id, acked)
		}
		s.end(of, true)
	}
}

// TestSessionsOfTwoClients: no two clients have a session in common, nor has a client that starts
// again.
func TestSessionsOfTwoClients(t *testing.T) {
	known := make(map[session.ID]bool)
	for range 100 {
		var s sessions
		name, _, _ := s.begin()
		id, _ := sequenceOf(t, name)
		if known[id] {
			t.Fatalf("two clients have session %x", id)
		}
		known[id] = true
	}
}

// TestWhatIsAcknowledged: an answer is acknowledged if it is of the first attempt, at a target
// that tries no others, and if no site is to ask another about it.
func TestWhatIsAcknowledged(t *testing.T) {
	granted := &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{Tokens: 1}}}
	released := func(parked bool) *samyav1.Result {
		return &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{Tokens: 1, Parked: parked}}}
	}
	for name, tc := range map[string]struct {
		acquire, knows bool
		lost           int
		result         *samyav1.Result
		want           bool
	}{
		"a grant":                          {acquire: true, knows: true, result: granted, want: true},
		"a release":                        {knows: true, result: released(false), want: true},
		"a release that is parked":         {knows: true, result: released(true)},
		"a grant after a lost try":         {acquire: true, knows: true, lost: 1, result: granted},
		"a lost try":                       {acquire: true, knows: true, lost: 1},
		"a refusal for want of tokens":     {acquire: true, knows: true, result: refuse("OUT_OF_TOKENS"), want: true},
		"a grant at an app manager beyond": {acquire: true, result: granted},
	} {
		t.Run(name, func(t *testing.T) {
			var s sessions
			m := newRelease("e", 1, nil)
			if tc.acquire {
				m = newAcquire("e", 1, nil)
			}
			s.name(m, true)
			s.name(m, tc.knows)
			if a := m.operation().GetAcquire(); tc.acquire && !tc.knows && a.GetAcknowledged() != 0 {
				t.Error("an app manager is told of a session")
			}
			for range tc.lost {
				m.judge(nil, mux.Lost, errReset, "us")
			}
			if tc.result != nil {
				m.judge(tc.result, mux.Answered, nil, "us")
			}
			s.over(m, tc.result)
			_, acked, _ := s.begin()
			if got := acked == 1; got != tc.want {
				t.Errorf("acknowledged: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestSessionsAtSites: a client names requests in sessions once a site has told that it knows
// them, and not at app managers.
func TestSessionsAtSites(t *testing.T) {
	for front, want := range map[bool]bool{true: false, false: true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			if front {
				w.manager("a", near, "b")
			} else {
				w.site("a", near)
			}
			bubble(t, w, nil, "a", func(c *Client) {
				for range 3 {
					g, err := c.Acquire(t.Context(), "acme/vm", 1)
					if err != nil {
						t.Fatal(err)
					}
					if rs, err := c.Batch(t.Context(), AcquireOp("acme/vm", 1)); err != nil || rs[0].Err != nil {
						t.Fatal(err, rs)
					}
					_, _, ok := session.Parse(g.RequestID)
					if w.mu.Lock(); ok && front || w.sessions > 0 != want && len(w.done) > 2 {
						t.Errorf("app manager: %t, %s; %d requests of sessions", front, g.RequestID, w.sessions)
					}
					w.mu.Unlock()
				}
				w.books(t, 6)
			})
		})
	}
}
