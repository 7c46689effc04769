// Package checks has the checks of acquires, releases, atomic batches, lists, reconciliations,
// rescues, drains and recoveries. App managers and
// sites make them alike, each at its own boundary: the bounds and formats of all fields,
// and how a request's fields fit together. The package refuses to know which sites there
// are, what time it is, and what a request finds at a site.
package checks

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/cutid"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Boundary says what differs between boundaries.
type Boundary struct {
	// MaxSites bounds the sites that tried may name.
	MaxSites int
	// MaxRelays bounds the tries of an app manager; 0 where app managers are no callers.
	MaxRelays uint32
}

// List checks the filters and the size of a list of entities. The page token is for its
// reader.
func List(r *samyav1.ListEntitiesRequest) error {
	err := errors.Join(
		name.Prefix("prefix", r.GetPrefix()), name.PageSize("page_size", int64(r.GetPageSize())), name.Part("contains", r.GetContains()),
		name.Parent("parent", r.GetParent()),
	)
	if r.GetTop() && r.GetParent() != "" {
		err = errors.Join(err, &name.Error{Field: "top", Problem: "goes with no parent: entities at the top have none"})
	}
	return err
}

// Attempted is the part of a request that tells of its attempts.
type Attempted interface {
	GetRequestId() string
	GetSite() string
	GetAttempt() uint32
	GetRelay() uint32
	GetTried() []string
	GetNotAfter() *timestamppb.Timestamp
	GetAcknowledged() uint64
}

// Acquire checks all fields of an acquire. Its error joins a [name.Error] for each field
// at fault, as do the errors of the other checks.
func (b Boundary) Acquire(r *samyav1.AcquireRequest) error {
	return errors.Join(
		name.Entity("entity", r.GetEntity()), name.Tokens("tokens", r.GetTokens()), b.attempts(r), wait("wait", r.GetWait()),
		name.MinTokens("min_tokens", r.GetMinTokens(), r.GetTokens()), leaseTerms(r.GetLease()),
	)
}

// Create checks all fields of a creation, and returns the terms of a rate quota.
func Create(r *samyav1.CreateEntityRequest) (rates.Terms, error) {
	terms, err := rates.Parse(r.GetKind(), r.GetPer(), r.GetTimeZone(), r.Durable)
	if r.GetKeys() && err == nil {
		terms, err = terms.OfKeys(r.Durable)
	}
	return terms, errors.Join(
		name.Entity("name", r.GetName()), name.Limit("limit", r.GetLimit()), name.Parent("parent", r.GetParent()), err,
		RequestID("request_id", r.GetRequestId()),
	)
}

// Reconcile checks all fields of a reconciliation, and returns its cut.
func Reconcile(r *samyav1.ReconcileEntityRequest) (cutid.Cut, error) {
	cut, err := cutid.Parse("cut", r.GetName(), r.GetCut())
	if err == nil && r.GetInUse() < cut.Leased {
		err = &name.Error{Field: "in_use", Problem: fmt.Sprintf("leases alone held %d at the cut: leases that have not ended count as in use", cut.Leased)}
	}
	return cut, errors.Join(
		name.Entity("name", r.GetName()), name.Limit("in_use", r.GetInUse()), err, RequestID("request_id", r.GetRequestId()),
	)
}

// Recover checks all fields of a recovery after the loss of a majority.
func Recover(r *samyav1.RecoverClusterRequest) error {
	errs := []error{sites("survivors", r.GetSurvivors()), sites("lost", r.GetLost())}
	for _, s := range r.GetLost() {
		if slices.Contains(r.GetSurvivors(), s) {
			errs = append(errs, &name.Error{Field: "lost", Problem: fmt.Sprintf("names %q, as survivors does", s)})
			break
		}
	}
	if !r.GetMachinesDestroyed() {
		errs = append(errs, &name.Error{Field: "machines_destroyed", Problem: "must be set: a lost site that still serves would grant tokens that others grant too"})
	}
	return errors.Join(errs...)
}

// mostSites is the largest number of sites in a list.
const mostSites = 63

// sites checks a list of sites.
func sites(field string, list []string) error {
	switch sorted := slices.Sorted(slices.Values(list)); {
	case len(list) == 0:
		return &name.Error{Field: field, Problem: "missing"}
	case len(list) > mostSites:
		return &name.Error{Field: field, Problem: fmt.Sprintf("%d sites, at most %d", len(list), mostSites)}
	case len(slices.Compact(sorted)) < len(list):
		return &name.Error{Field: field, Problem: "names a site twice"}
	}
	for _, s := range list {
		if err := name.Site(field, s); err != nil {
			return err
		}
	}
	return nil
}

// Rescue checks all fields of a rescue of an entity.
func Rescue(r *samyav1.RescueEntityRequest) error {
	var generation, leases error
	if r.GetGeneration() == 0 {
		generation = &name.Error{Field: "generation", Problem: "must be at least 1"}
	}
	if n := len(r.GetLeases()); n > maxHeldLeases {
		leases = &name.Error{Field: "leases", Problem: fmt.Sprintf("must be at most %d, not %d", maxHeldLeases, n)}
	}
	errs := []error{
		name.Entity("name", r.GetName()), name.Site("site", r.GetSite()), generation, held("net", r.GetNet()), held("held", r.GetHeld()),
		leases, RequestID("request_id", r.GetRequestId()),
	}
	for _, l := range r.GetLeases() {
		errs = append(errs, name.Tokens("leases.tokens", l.GetTokens()))
		if until := l.GetUntilMs(); until < 1 {
			errs = append(errs, &name.Error{Field: "leases.until_ms", Problem: "must be at least 1"})
		}
	}
	return errors.Join(errs...)
}

// maxHeldLeases bounds the parts of the leases in a rescue.
const maxHeldLeases = 8

// held checks a number of tokens that may be below zero.
func held(field string, tokens int64) error {
	if tokens < -name.MaxTokens || tokens > name.MaxTokens {
		return &name.Error{Field: field, Problem: fmt.Sprintf("must be at least %d and at most %d", -name.MaxTokens, name.MaxTokens)}
	}
	return nil
}

// Member checks the fields of a change of a site that names the site alone.
func Member(r interface {
	GetName() string
	GetRequestId() string
},
) error {
	return errors.Join(name.Site("name", r.GetName()), RequestID("request_id", r.GetRequestId()))
}

// Drain checks all fields of a drain, and of the end of one.
func Drain(r *samyav1.DrainMemberRequest) error {
	var heir error
	switch {
	case r.GetHeir() == "":
	case r.GetCancel():
		heir = &name.Error{Field: "heir", Problem: "must be empty with cancel"}
	default:
		heir = name.Site("heir", r.GetHeir())
	}
	return errors.Join(name.Site("name", r.GetName()), heir, RequestID("request_id", r.GetRequestId()))
}

// Release checks all fields of a release.
func (b Boundary) Release(r *samyav1.ReleaseRequest) error {
	least := int64(1)
	var leaseErr error
	if r.GetLease() != "" {
		least = 0
		_, _, leaseErr = name.Lease("lease", r.GetLease())
	}
	return errors.Join(
		name.Entity("entity", r.GetEntity()), name.Released("tokens", r.GetTokens(), least), b.attempts(r), leaseErr,
	)
}

// Home is the site of the lease that a checked release names; empty for none.
func Home(r *samyav1.ReleaseRequest) string {
	if r.GetLease() == "" {
		return ""
	}
	home, _, err := name.Lease("lease", r.GetLease())
	if err != nil {
		return ""
	}
	return home
}

// Batch checks all fields of an atomic batch but its operations.
func (b Boundary) Batch(r *samyav1.BatchRequest) error {
	return errors.Join(b.attempts(r), wait("wait", r.GetWait()))
}

// wait checks for how long a request may wait: 0 s to 60 s; nil is the site's default.
func wait(field string, d *durationpb.Duration) error {
	switch {
	case d == nil:
		return nil
	case d.CheckValid() != nil:
		return &name.Error{Field: field, Problem: "not a valid duration, at least 0s and at most 60s"}
	}
	return name.Wait(field, d.AsDuration())
}

// TTL checks the time to live of a lease: 1 s to 7 days.
func TTL(field string, d *durationpb.Duration) error {
	if d.CheckValid() != nil {
		return &name.Error{Field: field, Problem: "no valid duration, at least 1s and at most 168h (7 days)"}
	}
	return name.TTL(field, d.AsDuration())
}

// RequestID checks a request id; empty is none.
func RequestID(field, id string) error {
	if id == "" {
		return nil
	}
	return name.RequestID(field, id)
}

// maxShareTTL bounds the time to live of a lease of share, as input.MaxShareTTL does.
const maxShareTTL = 10 * time.Minute

func leaseTerms(l *samyav1.LeaseTerms) error {
	if l == nil {
		return nil
	}
	if l.GetShare() && l.GetTtl().IsValid() && l.GetTtl().AsDuration() > maxShareTTL {
		return &name.Error{Field: "lease.ttl", Problem: l.GetTtl().AsDuration().String() + ", at most 10m with lease.share"}
	}
	return errors.Join(TTL("lease.ttl", l.GetTtl()), name.Holder("lease.holder", l.GetHolder()))
}

// attempts checks the site and the attempts of a request. Most requests are first
// attempts.
func (b Boundary) attempts(r Attempted) error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	bad := func(field, format string, args ...any) {
		add(&name.Error{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	id := r.GetRequestId()
	add(RequestID("request_id", id))
	if site := r.GetSite(); site != "" {
		add(name.Site("site", site))
	}
	add(name.Attempt("attempt", int64(r.GetAttempt())))
	switch n := r.GetRelay(); {
	case n > 0 && b.MaxRelays == 0:
		bad("relay", "is for app managers to set")
	case n > b.MaxRelays:
		bad("relay", "%d, at most %d", n, b.MaxRelays)
	}
	later := r.GetAttempt() > 1 || r.GetRelay() > 0 && b.MaxRelays > 0
	if later && id == "" {
		bad("request_id", "missing: an attempt after the first has that of the first")
	}
	switch tried := r.GetTried(); {
	case len(tried) == 0:
	case !later:
		bad("tried", "only in attempts after the first")
	case len(tried) > b.MaxSites:
		bad("tried", "%d sites, at most %d", len(tried), b.MaxSites)
	default:
		for _, s := range tried {
			add(name.Site("tried", s))
		}
	}
	switch at := r.GetNotAfter(); {
	case at == nil && later:
		bad("not_after", "missing: an attempt after the first has that of the first")
	case at != nil && at.CheckValid() != nil:
		bad("not_after", "no valid time")
	}
	if acknowledged := r.GetAcknowledged(); acknowledged > 0 {
		switch _, sequence, ok := session.Parse(id); {
		case !ok:
			bad("acknowledged", "only with a request_id of a session")
		case acknowledged > sequence:
			bad("acknowledged", "%d, at most %d, the sequence of request_id", acknowledged, sequence)
		}
	}
	return errors.Join(errs...)
}

// WaitOf is the wait of a request that a check has found good, or the default.
func WaitOf(d *durationpb.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.AsDuration()
}
