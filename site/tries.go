package site

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// attempted is the common part of acquires and releases that describes their attempts.
type attempted interface {
	GetRequestId() string
	GetAttempt() uint32
	GetRelay() uint32
	GetTried() []string
	GetNotAfter() *timestamppb.Timestamp
}

// tries reads and checks the description of a request's attempts. Most requests have
// none.
func (s *Site) tries(r attempted) (input.Tries, error) {
	if r.GetAttempt() == 0 && r.GetRelay() == 0 && r.GetNotAfter() == nil && len(r.GetTried()) == 0 {
		return input.Tries{}, nil
	}
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &name.Error{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if err := name.Attempt("attempt", int64(r.GetAttempt())); err != nil {
		errs = append(errs, err)
	}
	if r.GetRelay() > attempt.MaxRelays {
		bad("relay", "%d, at most %d", r.GetRelay(), attempt.MaxRelays)
	}
	t := input.Tries{Attempt: attempt.Of(r.GetAttempt(), r.GetRelay())}
	later := r.GetAttempt() > 1 || r.GetRelay() > 0
	if later && r.GetRequestId() == "" {
		bad("request_id", "missing: an attempt after the first has that of the first")
	}
	switch {
	case len(r.GetTried()) == 0:
	case !later:
		bad("tried", "only in attempts after the first")
	case len(r.GetTried()) > len(s.members.Sites):
		bad("tried", "%d sites, at most the %d that there are", len(r.GetTried()), len(s.members.Sites))
	default:
		t.Tried = []core.SiteID{}
		for _, at := range r.GetTried() {
			id := core.SiteID(at)
			switch {
			case !slices.Contains(s.members.Sites, id):
				bad("tried", "%.64q is no site of the cluster", at)
			case at != s.cfg.Name && !slices.Contains(t.Tried, id):
				t.Tried = append(t.Tried, id)
			}
		}
	}
	switch at := r.GetNotAfter(); {
	case at == nil && later:
		bad("not_after", "missing: an attempt after the first has that of the first")
	case at == nil:
	case at.CheckValid() != nil:
		bad("not_after", "no valid time")
	default:
		t.NotAfter = max(1, at.AsTime().UnixMilli())
		if most := s.cfg.horizon(); at.AsTime().After(time.Now().Add(most)) {
			bad("not_after", "at most %v ahead by this site's clock", most)
		}
	}
	return t, errors.Join(errs...)
}
