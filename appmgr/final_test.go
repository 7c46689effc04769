package appmgr

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestFinal: the answer after a try that may have run. If the last answer holds for its
// own try alone, the outcome is unknown. The error then names the site where the request
// may have run. A caller that gave up is told Canceled.
func TestFinal(t *testing.T) {
	moved := func(attempt uint32, unclear ...string) call {
		return call{requestID: "id", entity: "acme", moves: &movement{attempt: attempt, unclear: unclear, notAfter: time.Unix(9, 0)}}
	}
	changed := func(unclear string) call {
		return call{requestID: "id", entity: "acme", changes: &change{unclear: unclear}}
	}
	for name, test := range map[string]struct {
		call call
		last error
		want apierr.Reason
		site string
	}{
		"a first try":                        {moved(1), apierr.Overload("eu", 0), apierr.Overloaded, "eu"},
		"a first try of a later attempt":     {moved(2), apierr.Overload("eu", 0), apierr.OutcomeUnknown, "eu"},
		"behind an unclear one":              {moved(1, "us", "ap"), apierr.Overload("eu", 0), apierr.OutcomeUnknown, "ap"},
		"settled":                            {moved(1, "us"), apierr.NoTokens("acme", "eu", 2, 1, 0), apierr.OutOfTokens, "eu"},
		"canceled":                           {moved(1, "us"), apierr.Canceled, apierr.Canceled, "us"},
		"too late, a later attempt":          {moved(2), apierr.RequestExpired, apierr.RequestExpired, ""},
		"too late, behind an unclear one":    {moved(1, "us"), apierr.RequestExpired, apierr.OutcomeUnknown, "us"},
		"reused, behind an unclear one":      {moved(1, "us"), apierr.Reused("id", "eu"), apierr.OutcomeUnknown, "us"},
		"done":                               {moved(1, "us"), nil, "", ""},
		"a change":                           {changed(""), apierr.NoQuorum, apierr.NoQuorum, ""},
		"a change behind an unclear one":     {changed("us"), apierr.NoQuorum, apierr.OutcomeUnknown, "us"},
		"a change that is settled":           {changed("us"), apierr.Exists("acme"), apierr.EntityExists, ""},
		"a change of an entity not found":    {changed("us"), apierr.NotFound("acme"), apierr.OutcomeUnknown, "us"},
		"a change whose caller gave up":      {changed("us"), apierr.Canceled, apierr.Canceled, "us"},
		"a change whose last try is unclear": {changed("us"), apierr.Unknown("id", "eu", nil), apierr.OutcomeUnknown, "eu"},
		"a change that is done":              {changed("us"), nil, "", ""},
	} {
		err := (&router{}).final(test.call, test.last)
		if got := apierr.ReasonOf(err); got != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
			continue
		}
		e, _ := errors.AsType[*apierr.Error](err)
		if e != nil && e.Site != test.site {
			t.Errorf("%s: at site %q, want %q", name, e.Site, test.site)
		}
		if e != nil && e.Reason == apierr.OutcomeUnknown && test.call.moves != nil && (e.Attempt != test.call.moves.attempt+1 || !e.NotAfter.Equal(time.Unix(9, 0)) || e.RequestID != "id") {
			t.Errorf("%s: cannot be repeated: %+v", name, e)
		}
	}
}

// TestTellsNothingOlder: a watch that goes on at another site passes over older states:
// an earlier generation, or an earlier version of the same generation. A deletion is
// told with any version, unless it deletes an earlier entity.
func TestTellsNothingOlder(t *testing.T) {
	for name, test := range map[string]struct {
		generation, version uint64
		deleted             bool
		told, done          bool
	}{
		"the same again":              {5, 3, false, true, false},
		"a later version":             {5, 4, false, true, false},
		"an earlier version":          {5, 2, false, false, false},
		"a later generation":          {6, 1, false, true, false},
		"an earlier generation":       {4, 9, false, false, false},
		"deleted":                     {5, 3, true, true, true},
		"deleted, no version":         {5, 0, true, true, true},
		"an earlier one's deletion":   {4, 9, true, false, false},
		"a later one's deletion":      {6, 0, true, true, true},
		"a later one, earlier figure": {6, 0, false, true, false},
	} {
		var told []string
		r := &relay{send: func(s *samyav1.WatchEntityResponse) error {
			told = append(told, s.GetResumeToken())
			return nil
		}}
		state := func(token string, generation, version uint64, deleted bool) *samyav1.WatchEntityResponse {
			return &samyav1.WatchEntityResponse{
				Entity: &samyav1.Entity{Name: "acme", Generation: generation, Version: version}, Deleted: deleted, ResumeToken: token,
			}
		}
		if done, err := r.tell(state("a", 5, 3, false)); done || err != nil {
			t.Fatalf("%s: the first state: %t, %v", name, done, err)
		}
		done, err := r.tell(state("b", test.generation, test.version, test.deleted))
		want, token := []string{"a"}, "a"
		if test.told {
			want, token = []string{"a", "b"}, "b"
		}
		if done != test.done || err != nil || !slices.Equal(told, want) || r.token != token {
			t.Errorf("%s: told %q, done %t, %v, goes on from %q; want %q, %t", name, told, done, err, r.token, want, test.done)
		}
	}
	refuses := errors.New("no")
	r := &relay{send: func(*samyav1.WatchEntityResponse) error { return refuses }}
	if _, err := r.tell(&samyav1.WatchEntityResponse{Deleted: true}); !errors.Is(err, refuses) {
		t.Errorf("a caller that takes no more: %v", err)
	}
}
