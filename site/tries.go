package site

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/checks"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

// tries reads the description of a request's attempts, and checks what needs this site:
// its members and its clock. Most requests have none. Package checks has the other checks.
func (s *Site) tries(r checks.Attempted) (input.Tries, error) {
	if r.GetAttempt() == 0 && r.GetRelay() == 0 && r.GetNotAfter() == nil && len(r.GetTried()) == 0 && r.GetAcknowledged() == 0 {
		return input.Tries{}, nil
	}
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &name.Error{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	t := input.Tries{Attempt: attempt.Of(r.GetAttempt(), r.GetRelay()), Acked: r.GetAcknowledged()}
	if tried := r.GetTried(); len(tried) > 0 && len(tried) <= s.maxSites() {
		t.Tried = []core.SiteID{}
		for _, at := range tried {
			id := core.SiteID(at)
			switch {
			case name.Site("tried", at) != nil: // as package checks tells
			case !s.among(id):
				bad("tried", "%.64q is no site of the cluster", at)
			case at != s.cfg.Name && !slices.Contains(t.Tried, id):
				t.Tried = append(t.Tried, id)
			}
		}
	}
	if at := r.GetNotAfter(); at != nil && at.IsValid() {
		until := at.AsTime()
		t.NotAfter = max(1, until.UnixMilli())
		if most := s.cfg.horizon(); time.Until(until) > most {
			bad("not_after", "at most %v ahead by this site's clock", most)
		}
	}
	return t, errors.Join(errs...)
}
