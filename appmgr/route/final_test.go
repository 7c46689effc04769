package route

import (
	"errors"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
)

// TestFinal: the answer after a try that may have run. If the last answer holds for its
// own try alone, the outcome is unknown. The error then names the site where the request
// may have run. A caller that gave up is told Canceled.
func TestFinal(t *testing.T) {
	moved := func(attempt uint32, indeterminate ...string) Call {
		return Call{RequestID: "id", Entity: "acme", Moves: &Movement{attempt: attempt, indeterminate: indeterminate, NotAfter: time.Unix(9, 0)}}
	}
	changed := func(indeterminate string) Call {
		return Call{RequestID: "id", Entity: "acme", Changes: &Change{indeterminate: indeterminate}}
	}
	for name, test := range map[string]struct {
		call Call
		last error
		want apierr.Reason
		site string
	}{
		"a first try":                              {moved(1), apierr.Overload("eu", 0), apierr.Overloaded, "eu"},
		"a first try of a later attempt":           {moved(2), apierr.Overload("eu", 0), apierr.OutcomeUnknown, "eu"},
		"behind an indeterminate one":              {moved(1, "us", "ap"), apierr.Overload("eu", 0), apierr.OutcomeUnknown, "ap"},
		"settled":                                  {moved(1, "us"), refuse.NoTokens("acme", "eu", 2, 1, 0), apierr.OutOfTokens, "eu"},
		"canceled":                                 {moved(1, "us"), apierr.Canceled, apierr.Canceled, "us"},
		"too late, a later attempt":                {moved(2), apierr.RequestExpired, apierr.RequestExpired, ""},
		"too late, behind an indeterminate one":    {moved(1, "us"), apierr.RequestExpired, apierr.OutcomeUnknown, "us"},
		"reused, behind an indeterminate one":      {moved(1, "us"), refuse.Reused("id", "eu"), apierr.OutcomeUnknown, "us"},
		"done":                                     {moved(1, "us"), nil, "", ""},
		"a change":                                 {changed(""), apierr.NoQuorum, apierr.NoQuorum, ""},
		"a change behind an indeterminate one":     {changed("us"), apierr.NoQuorum, apierr.OutcomeUnknown, "us"},
		"a change that is settled":                 {changed("us"), refuse.Exists("acme"), apierr.EntityExists, ""},
		"a change of an entity not found":          {changed("us"), apierr.NotFound("acme"), apierr.OutcomeUnknown, "us"},
		"a change whose caller gave up":            {changed("us"), apierr.Canceled, apierr.Canceled, "us"},
		"a change whose last try is indeterminate": {changed("us"), apierr.Unknown("id", "eu", nil), apierr.OutcomeUnknown, "eu"},
		"a change that is done":                    {changed("us"), nil, "", ""},
	} {
		err := (&Router{}).final(test.call, test.last)
		if got := apierr.ReasonOf(err); got != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
			continue
		}
		e, _ := errors.AsType[*apierr.Error](err)
		if e != nil && e.Site != test.site {
			t.Errorf("%s: at site %q, want %q", name, e.Site, test.site)
		}
		if e != nil && e.Reason == apierr.OutcomeUnknown && test.call.Moves != nil && (e.Attempt != test.call.Moves.attempt+1 || !e.NotAfter.Equal(time.Unix(9, 0)) || e.RequestID != "id") {
			t.Errorf("%s: cannot be repeated: %+v", name, e)
		}
	}
}
