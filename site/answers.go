package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/versions"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
)

// asked is the part of a request that its refusal mentions.
type asked struct {
	entity, requestID string
	tokens            int64
}

// failure turns an answer other than OK into the error for clients.
func (s *Site) failure(a answer.Answer, q asked) error {
	retry := time.Duration(a.RetryAfter) * time.Millisecond
	switch a.Code {
	case answer.OK:
		return nil
	case answer.OutOfTokens:
		e := refuse.NoTokens(q.entity, s.cfg.Name, q.tokens, int64(a.Left), retry)
		e.RequestID, e.Elsewhere = q.requestID, a.Elsewhere
		return lackedBy(e, &a, &q)
	case answer.ExceedsLimit:
		e := refuse.Exceeds(q.entity, s.cfg.Name, q.tokens, int64(a.Tokens))
		e.RequestID = q.requestID
		return lackedBy(e, &a, &q)
	case answer.NotFound:
		if q.entity == "" && a.Lacking == "" {
			return apierr.New(apierr.EntityNotFound, "one of the entities was deleted")
		}
		return apierr.NotFound(cmp.Or(q.entity, a.Lacking))
	case answer.Exists:
		return refuse.Exists(q.entity)
	case answer.Reused:
		return refuse.Reused(q.requestID, s.cfg.Name)
	case answer.Mismatch:
		if q.entity == "" {
			return apierr.New(apierr.VersionMismatch, "the mode has version %d, not the one expected", a.Mode().Decided.Version)
		}
		e := apierr.New(apierr.VersionMismatch, "entity %q has not the version or generation expected", q.entity)
		e.Entity = q.entity
		return e
	case answer.Overloaded:
		return apierr.Overload(s.cfg.Name, retry)
	case answer.QueueFull:
		e := apierr.New(apierr.QueueFull, "too many acquires wait for tokens of entity %q at site %s", cmp.Or(a.Lacking, q.entity), s.cfg.Name)
		return lackedBy(q.about(s, retry, e), &a, &q)
	case answer.Superseded:
		return q.about(s, 0, apierr.New(apierr.Superseded, "a later attempt of request %q was made; this one does nothing, a repeat must count higher", q.requestID))
	case answer.Expired:
		return q.about(s, 0, apierr.New(apierr.RequestExpired, "request %q came after its not_after; nothing was done", q.requestID))
	case answer.NoLease:
		e := apierr.New(apierr.LeaseNotFound, "there is no such lease at site %s, or it has ended", s.cfg.Name)
		e.RequestID, e.Site = q.requestID, s.cfg.Name
		return e
	case answer.NoQuorum:
		return q.about(s, retry, apierr.New(apierr.NoQuorum, "no majority of the sites could be reached in time; nothing was changed"))
	case answer.Unknown:
		return apierr.Unknown(q.requestID, s.cfg.Name, errors.New("the time ran out while it was being decided"))
	case answer.Overflow:
		e := apierr.New(apierr.OutOfRange, "the tokens of entity %q would leave the range that is counted", cmp.Or(q.entity, a.Lacking))
		e.Entity = cmp.Or(q.entity, a.Lacking)
		return e
	case answer.Stopping:
		return q.about(s, 0, apierr.New(apierr.ShuttingDown, "site %s is about to stop", s.cfg.Name))
	case answer.Unvouched:
		return q.about(s, time.Second, apierr.New(apierr.SiteUnavailable, "site %s is %s; nothing was done", s.cfg.Name, s.waiting(a.Missing)))
	case answer.Halted:
		return q.about(s, time.Second, apierr.New(apierr.SiteUnavailable, "entity %q is halted at site %s, as a balance is broken; nothing was done", q.entity, s.cfg.Name))
	case answer.Draining:
		return q.about(s, 0, apierr.New(apierr.SiteDraining, "site %s leaves the cluster and takes no new requests; nothing was done", s.cfg.Name))
	case answer.Moved:
		e := apierr.New(apierr.LeaseMoved, "site %s leaves the cluster, and its heir has the lease; nothing was done", s.cfg.Name)
		e.Entity, e.RequestID, e.Site = q.entity, q.requestID, a.Lacking
		return e
	case answer.TooEarly:
		return apierr.New(apierr.ClusterVersionTooLow, "that needs a cluster of version %d, and the cluster is of version %d; nothing was done. "+
			"Once all sites have a build that speaks version %d, raise the cluster's: samya cluster version --raise", a.Version(), s.speaks.Load().Cluster, a.Version())
	case answer.Changing:
		return q.about(s, time.Second, apierr.New(apierr.MembersChanging, "a change of members is under way: %s; nothing was done", underWay(a.Members())))
	case answer.Invalid:
		return apierr.Invalid("tokens", "out of range")
	case answer.Unshareable:
		return apierr.Invalid("lease.share", "the entity must be a rate quota of kind window or bucket, without a parent")
	case answer.ByClock:
		return apierr.Invalid("entity", "a rate quota: its tokens come back by the clock, and are not released")
	case answer.Unrated:
		return apierr.Invalid("name", "no rate quota: tokens of other entities come back by releases")
	case answer.OfKey:
		return apierr.Invalid("entity", "a template has no tokens itself, its keys have: the names below it; and keys have no leases")
	}
	return apierr.New(apierr.Internal, "an answer of unknown code %d", a.Code)
}

// about fills in what an error of a site is about, and when to ask again; 0: no advice.
func (q asked) about(s *Site, retry time.Duration, e *apierr.Error) *apierr.Error {
	e.Entity, e.RequestID, e.Site, e.RetryAfter = q.entity, q.requestID, s.cfg.Name, retry
	return e
}

// lackedBy names the entity that lacked the tokens, or whose limit is too low, if it is
// not the entity asked for.
func lackedBy(e *apierr.Error, a *answer.Answer, q *asked) *apierr.Error {
	if a.Lacking == "" || a.Lacking == q.entity {
		return e
	}
	return e.LackedBy(a.Lacking, q.tokens)
}

// refusal turns the answer to a change, if it is not OK, into the error for clients.
func (s *Site) refusal(ctx context.Context, a answer.Answer, ch *input.Change) error {
	if ch.Kind.OfSites() {
		return s.memberRefusal(ctx, a, ch)
	}
	if ch.Kind == input.RaiseVersion {
		switch a.Code {
		case answer.Mismatch:
			return apierr.New(apierr.VersionMismatch, "the cluster is of version %d, which can be raised to %d alone", a.Version(), a.Version()+1)
		case answer.Unready:
			return unready(a.Unready(), a.Version(), ch.Version)
		}
	}
	if ch.Kind == input.RescueEntity {
		if e := refusedRescue(&a, ch); e != nil {
			return e
		}
	}
	switch a.Code {
	case answer.Mismatch:
		if ch.Kind != input.Reconcile {
			break
		}
		e := apierr.New(apierr.VersionMismatch, "the cut of entity %q does not hold any more: since then the entity was reconciled, its limit or its surplus changed, or it was created anew; begin with another cut", ch.Name)
		e.Entity = ch.Name
		return e
	case answer.NoParent:
		if ch.Kind == input.Reconcile {
			e := apierr.New(apierr.VersionMismatch, "fewer tokens of entity %q are in use than the books count, and a site was lost: reconcile the entity above first, then this one by another cut", ch.Name)
			e.Entity, e.RequestID = ch.Name, ch.RequestID
			return e
		}
		return refuse.NoParent(ch.Name, ch.Parent)
	case answer.HasChildren:
		return refuse.Parental(ch.Name)
	case answer.ByClock:
		if ch.Kind == input.Reconcile {
			return apierr.Invalid("in_use", "tokens of a rate quota come back by the clock: pass the in_use of the cut")
		}
		return apierr.Invalid("parent", "the nearest entity above a rate quota that is none itself stays the same: tokens acquired through the rate quota are out of it")
	case answer.OfKey:
		return apierr.Invalid("parent", "a template stands below rate quotas alone, and no entity stands below it")
	case answer.Looped:
		return apierr.Invalid("parent", "the entity itself, or one that stands below it")
	case answer.TooDeep:
		return apierr.Invalid("parent", fmt.Sprintf("entities would stand more than %d deep", core.MaxDepth))
	}
	return s.failure(a, asked{entity: ch.Name, requestID: ch.RequestID})
}

// unready returns the error about sites that keep the version from being raised. A site
// with an older build decides what the caller has to do: it keeps the version as it is,
// whoever else is away. Sites that are away may come back.
func unready(sites []answer.UnreadySite, now, to versions.Version) error {
	reason := apierr.SiteUnavailable
	texts := make([]string, len(sites))
	for i, u := range sites {
		switch {
		case u.Speaks == versions.Range{}:
			texts[i] = fmt.Sprintf("site %s has not told which versions its build speaks", u.Site)
		case !u.Speaks.Speaks(to):
			reason = apierr.VersionMismatch
			texts[i] = fmt.Sprintf("site %s has a build that speaks %v", u.Site, u.Speaks)
		default:
			texts[i] = fmt.Sprintf("site %s is not connected", u.Site)
		}
	}
	return apierr.New(reason, "the cluster stays at version %d: %s", now, strings.Join(texts, "; "))
}

// stalledRetry is the advice to a caller while the site takes no requests, handingRetry
// while the site is handed over, which takes less time than that.
const stalledRetry, handingRetry = 100 * time.Millisecond, 10 * time.Millisecond

// ask asks the core of a site; with makes the input for the call. Any answer but OK is the
// error for clients.
func (q asked) ask(ctx context.Context, s *Site, with func(input.Call) input.Input) (answer.Answer, error) {
	return q.askTraced(ctx, s, nil, with)
}

// askTraced is ask for a request that may be traced.
func (q asked) askTraced(ctx context.Context, s *Site, t *traced, with func(input.Call) input.Input) (answer.Answer, error) {
	a, err := s.engine.DoTraced(ctx, with, t.durable())
	if err != nil {
		err = s.broken(err, q)
	} else {
		err = s.failure(a, q)
	}
	t.answered(&q, int64(a.Tokens), err)
	return a, err
}

// broken turns an error of the engine into the error for clients.
func (s *Site) broken(err error, q asked) error {
	switch {
	case errors.Is(err, engine.ErrBusy):
		return apierr.Overload(s.cfg.Name, time.Second)
	case errors.Is(err, engine.ErrStalled):
		e := apierr.New(apierr.SiteUnavailable, "site %s takes no requests for the moment; nothing was done: %v", s.cfg.Name, err)
		e.Site, e.RetryAfter, e.Err = s.cfg.Name, stalledRetry, err
		if errors.Is(err, ErrHandedOver) {
			e.RetryAfter = handingRetry
		}
		return e
	case q.requestID == "" && errors.Is(err, engine.ErrGivenUp):
		e := apierr.New(apierr.SiteUnavailable, "site %s cannot tell: %v", s.cfg.Name, err)
		e.Site, e.RetryAfter, e.Err = s.cfg.Name, stalledRetry, err
		return e
	case q.requestID == "":
		return apierr.From(err)
	default:
		return apierr.Unknown(q.requestID, s.cfg.Name, err)
	}
}

func entityOf(v *answer.View) *samyav1.Entity {
	e := &samyav1.Entity{
		Name: v.Name, Limit: int64(v.Limit), Generation: v.Generation, Version: v.Version,
		Parent: v.Parent, Children: int32(v.Children), Per: v.Rate.Per(), Kind: string(v.Rate.Kind), TimeZone: v.Rate.Zone, Keys: v.Rate.Keys,
	}
	if !v.Rate.None() {
		durable := !v.Rate.Volatile
		e.Durable = &durable
	}
	return e
}
