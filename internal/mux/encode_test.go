package mux

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTextsThatAreNone: a text that is not UTF-8 is refused in any field. With it a
// server may refuse the calls of others.
func TestTextsThatAreNone(t *testing.T) {
	const bad = "a\xff"
	acquire := func(r *samyav1.AcquireRequest) *samyav1.Operation {
		return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}
	}
	release := func(r *samyav1.ReleaseRequest) *samyav1.Operation {
		return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}}
	}
	for what, op := range map[string]*samyav1.Operation{
		"an acquire's entity":     acquire(&samyav1.AcquireRequest{Entity: bad}),
		"an acquire's request id": acquire(&samyav1.AcquireRequest{RequestId: bad}),
		"an acquire's site":       acquire(&samyav1.AcquireRequest{Site: bad}),
		"an acquire's holder":     acquire(&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Holder: bad}}),
		"a site tried before":     acquire(&samyav1.AcquireRequest{Tried: []string{"us", bad}}),
		"a release's entity":      release(&samyav1.ReleaseRequest{Entity: bad}),
		"a release's request id":  release(&samyav1.ReleaseRequest{RequestId: bad}),
		"a release's site":        release(&samyav1.ReleaseRequest{Site: bad}),
		"a release's lease":       release(&samyav1.ReleaseRequest{Lease: bad}),
		"a site released at":      release(&samyav1.ReleaseRequest{Tried: []string{"us", bad}}),
	} {
		if err := (&call{}).encode(op); apierr.ReasonOf(err) != apierr.InvalidField {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, op := range map[string]*samyav1.Operation{
		"an acquire": acquire(&samyav1.AcquireRequest{Entity: "ä", RequestId: "ä", Site: "ä", Tried: []string{"ä"}}),
		"a release":  release(&samyav1.ReleaseRequest{Entity: "ä", RequestId: "ä", Site: "ä", Lease: "ä", Tried: []string{"ä"}}),
	} {
		if err := (&call{}).encode(op); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDeadlineFarAway: a time beyond the longest on the wire is told as the longest.
func TestDeadlineFarAway(t *testing.T) {
	now := time.UnixMilli(1 << 40)
	c := &call{deadline: now.Add(100 * 24 * time.Hour)}
	if err := c.encode(operation("a")); err != nil {
		t.Fatal(err)
	}
	m := &samyav1.StreamRequest{}
	if err := m.UnmarshalVT(appendCall(nil, c, now)); err != nil {
		t.Fatal(err)
	}
	if got := m.GetCalls()[0].GetTimeoutMs(); got != math.MaxUint32 {
		t.Errorf("the server is told %d ms", got)
	}
}

// TestEarlierTimeCounts: the server is told the earlier of the call's time and its
// context's deadline, and the earlier ends the call.
func TestEarlierTimeCounts(t *testing.T) {
	for what, tc := range map[string]struct{ by, deadline time.Duration }{
		"the deadline": {2 * time.Second, time.Second},
		"the time":     {time.Second, 2 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, 10, func(r rig) {
				t, m, conn := r.t, r.m, r.conn
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				began, done := time.Now(), make(chan outcome, 1)
				go func() {
					r, f, err := m.DoBy(ctx, operation("a"), began.Add(tc.by))
					done <- outcome{r, f, err}
				}()
				if got := conn.stream().taken()[0].GetCalls()[0].GetTimeoutMs(); got != 1000 {
					t.Errorf("the server is told %d ms, want 1000", got)
				}
				o := <-done
				if took := time.Since(began); took != time.Second || o.fate != Lost || o.err != context.DeadlineExceeded { //nolint:errorlint // the very error
					t.Errorf("it ends after %v: %v, %v", took, o.fate, o.err)
				}
			})
		})
	}
}
