package apierr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestRoundTripFailure(t *testing.T) {
	for _, r := range apierr.Reasons() {
		for _, e := range []*apierr.Error{full(r), {Reason: r, Message: "bare"}} {
			f := e.Failure()
			if d := cmp.Diff(e, apierr.FromFailure(f), noCause); d != "" {
				t.Errorf("%s (-failed +read):\n%s", r, d)
			}
			if f.GetCode() != int32(r.Code()) {
				t.Errorf("%s has code %d, want %d", r, f.GetCode(), r.Code())
			}
		}
	}
	for _, f := range []*samyav1.Failure{nil, {}, {Message: "x"}} {
		if e := apierr.FromFailure(f); e.Reason != apierr.Internal {
			t.Errorf("%v reads as %v", f, e)
		}
	}
}

// TestWithin: fields are named as parts of another field; the error itself is left as it
// is.
func TestWithin(t *testing.T) {
	e := apierr.InvalidFields(apierr.Violation{Field: "tokens", Problem: "0, at least 1"}, apierr.Violation{Field: "site", Problem: "no"})
	got := e.Within("operations[3].acquire.")
	want := apierr.InvalidFields(
		apierr.Violation{Field: "operations[3].acquire.tokens", Problem: "0, at least 1"},
		apierr.Violation{Field: "operations[3].acquire.site", Problem: "no"},
	)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if e.Violations[0].Field != "tokens" {
		t.Errorf("the error was changed: %v", e)
	}
	if e := apierr.NotFound("a"); e.Within("x.") != e {
		t.Error("an error that names no field was changed")
	}
}
