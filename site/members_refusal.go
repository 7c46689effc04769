package site

import (
	"context"
	"slices"
	"time"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// memberRefusal is refusal for a change of the members. It looks at the members for the
// reason: an answer of the core has only a code.
func (s *Site) memberRefusal(ctx context.Context, a answer.Answer, ch *input.Change) error {
	switch a.Code {
	case answer.NotFound, answer.Mismatch, answer.Changing, answer.Invalid:
	case answer.Overloaded:
		if a.RetryAfter > 0 {
			return s.failure(a, asked{requestID: ch.RequestID})
		}
	default:
		return s.failure(a, asked{requestID: ch.RequestID})
	}
	m, err := s.roster(ctx)
	if err != nil {
		// Nothing was done, whatever the reason is.
		e := apierr.New(apierr.MembersChanging, "site %s refuses the change of the members, and cannot tell why", s.cfg.Name)
		e.RequestID, e.Site, e.RetryAfter, e.Err = ch.RequestID, s.cfg.Name, time.Second, err
		return e
	}
	e := refusedChange(m, ch, a.Code)
	e.RequestID = ch.RequestID
	return e
}

// refusedChange tells why the sites refuse a change of the members, by the members as they
// are.
func refusedChange(m *answer.Members, ch *input.Change, code answer.Code) *apierr.Error {
	i := slices.IndexFunc(m.Sites, func(s answer.Member) bool { return string(s.Site) == ch.Name })
	switch {
	case code == answer.Overloaded && ch.Kind == input.AddSite:
		return apierr.New(apierr.OutOfRange, "the cluster has had %d sites, at most %d; site %q is not added", avantan.MaxMembers, avantan.MaxMembers, ch.Name)
	case code == answer.Overloaded:
		return apierr.New(apierr.OutOfRange, "the voters of the cluster have changed %d times, and cannot change any more", m.Version)
	case i < 0:
		return apierr.New(apierr.MemberNotFound, "the cluster has no site %q", ch.Name)
	case code == answer.Changing && ch.Kind == input.RescueSite:
		e := apierr.New(apierr.MembersChanging, "what site %q held of some entities is not back yet; nothing was done", ch.Name)
		e.RetryAfter = time.Second
		return e
	case code == answer.Changing:
		return changing(m, ch)
	}
	state := stored.SeatState(m.Sites[i].State)
	if code == answer.Invalid {
		return invalidChange(ch)
	}
	if ch.Kind == input.RescueSite {
		return notLost(ch.Name)
	}
	if why, ok := refusals[ch.Kind][state]; ok {
		return refused(why, ch.Name)
	}
	return changing(m, ch)
}

// refusals tell why a site is in the wrong state for a change.
var refusals = map[input.ChangeKind]map[stored.SeatState]string{
	input.DrainSite: {
		stored.SeatJoining: "site %q is not a member yet: remove it instead",
		stored.SeatLost:    "site %q was written off, and has nothing to hand over",
	},
	input.KeepSite: {
		stored.SeatJoining: "site %q is not a member yet, and does not drain",
		stored.SeatGone:    "site %q has left, and its name is used up",
		stored.SeatLost:    "site %q was written off, and does not come back",
	},
	input.RemoveSite: {
		stored.SeatMember:   "site %q is a member: drain it, or remove it as lost if its data is lost for good",
		stored.SeatDraining: "site %q drains, and leaves by itself: remove it as lost only if its data is lost for good",
		stored.SeatLost:     "site %q was written off already",
	},
	input.LoseSite: {
		stored.SeatJoining: "site %q is not a member, and holds nothing: remove it, not as lost",
		stored.SeatGone:    "site %q has left, and holds nothing",
	},
}

// refused is an error about the state of a site.
func refused(format string, args ...any) *apierr.Error {
	return apierr.New(apierr.MemberState, format, args...)
}

// changing tells which other change a change has to wait for. One that is not seen any more
// was decided meanwhile.
func changing(m *answer.Members, ch *input.Change) *apierr.Error {
	e := apierr.New(apierr.MembersChanging, "the members have changed meanwhile; nothing was done")
	drains := slices.IndexFunc(m.Sites, func(s answer.Member) bool {
		return s.State == string(stored.SeatDraining) && string(s.Site) != ch.Name
	})
	unsettled := slices.IndexFunc(m.Sites, func(s answer.Member) bool { return s.Unsettled })
	switch {
	case m.Behind == 1:
		e.Message = "1 entity has to adopt the new voters of the last change first; nothing was done"
	case m.Behind > 1:
		e = apierr.New(apierr.MembersChanging, "%d entities have to adopt the new voters of the last change first; nothing was done", m.Behind)
	case ch.Kind == input.DrainSite && drains >= 0:
		e = apierr.New(apierr.MembersChanging, "site %q drains, and one site leaves at a time; nothing was done", m.Sites[drains].Site)
	case ch.Kind == input.DrainSite && unsettled >= 0:
		s := &m.Sites[unsettled]
		e = apierr.New(apierr.MembersChanging, "the drain of site %q was cancelled, and site %q has to confirm what was handed over; nothing was done", s.Site, s.Heir)
	}
	e.RetryAfter = time.Second
	return e
}

// invalidChange tells why a change would leave no member, or names no heir.
func invalidChange(ch *input.Change) *apierr.Error {
	switch {
	case ch.Kind == input.LoseSite:
		return refused("site %q is the only voter", ch.Name)
	case ch.Kind != input.DrainSite:
		return apierr.Invalid("name", "not a name of a site")
	case ch.Heir == core.SiteID(ch.Name):
		return apierr.Invalid("heir", "the site itself")
	case ch.Heir != "":
		return apierr.Invalid("heir", "not a member of the cluster")
	}
	return refused("site %q is the only member: add another site first", ch.Name)
}
