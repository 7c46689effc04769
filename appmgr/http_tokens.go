package appmgr

import (
	"net/http"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// tries are the fields by which acquires and releases tell of their attempts.
type tries struct {
	attempt  int64
	tried    []string
	notAfter *timestamppb.Timestamp
}

// in adds the fields to those of a body.
func (t *tries) in(fs fields) fields {
	fs["attempt"] = whole("attempt", 1, name.MaxAttempt, &t.attempt)
	fs["tried"] = texts("tried", &t.tried)
	fs["not_after"] = instant("not_after", &t.notAfter)
	return fs
}

func (a *api) acquire(w http.ResponseWriter, r *http.Request, entity string) error {
	in, t := &samyav1.AcquireRequest{Entity: entity}, &tries{}
	terms := &samyav1.LeaseTerms{}
	if err := a.read(w, r, t.in(fields{
		"tokens":     whole("tokens", 1, name.MaxTokens, &in.Tokens),
		"min_tokens": whole("min_tokens", 1, name.MaxTokens, &in.MinTokens),
		"request_id": text("request_id", &in.RequestId),
		"site":       text("site", &in.Site),
		"wait":       period("wait", name.Wait, &in.Wait),
		"dry_run":    truth("dry_run", &in.DryRun),
		"lease": object("lease", func() { in.Lease = terms }, fields{
			"ttl":    period("lease.ttl", name.TTL, &terms.Ttl),
			"holder": text("lease.holder", &terms.Holder),
		}),
	})); err != nil {
		return err
	}
	switch {
	case in.GetTokens() == 0:
		return apierr.Invalid("tokens", "missing")
	case in.GetLease() != nil && in.GetLease().GetTtl() == nil:
		return apierr.Invalid("lease.ttl", "missing")
	}
	in.Attempt, in.Tried, in.NotAfter = uint32(t.attempt), t.tried, t.notAfter
	out, err := a.service.Acquire(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, moved{
		Entity: entity, Tokens: out.GetTokens(), RequestID: out.GetRequestId(), Site: out.GetSite(), Left: out.GetLeft(),
		Lease: leaseOf(out.GetLease()),
	})
}

func (a *api) release(w http.ResponseWriter, r *http.Request, entity string) error {
	in, t := &samyav1.ReleaseRequest{Entity: entity}, &tries{}
	if err := a.read(w, r, t.in(fields{
		"tokens":     whole("tokens", 1, name.MaxTokens, &in.Tokens),
		"lease":      text("lease", &in.Lease),
		"request_id": text("request_id", &in.RequestId),
		"site":       text("site", &in.Site),
	})); err != nil {
		return err
	}
	if in.GetTokens() == 0 && in.GetLease() == "" {
		return apierr.Invalid("tokens", "missing")
	}
	return a.releaseOf(w, r, in, t)
}

// releaseOf makes a release and writes its answer.
func (a *api) releaseOf(w http.ResponseWriter, r *http.Request, in *samyav1.ReleaseRequest, t *tries) error {
	in.Attempt, in.Tried, in.NotAfter = uint32(t.attempt), t.tried, t.notAfter
	out, err := a.service.Release(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, moved{
		Entity: in.GetEntity(), Tokens: out.GetTokens(), RequestID: out.GetRequestId(), Site: out.GetSite(), Left: out.GetLeft(),
		Parked: out.GetParked(),
	})
}

func (a *api) listLeases(w http.ResponseWriter, r *http.Request, _ string) error {
	q, err := query(r, "holder", "entity", "page_size", "page_token")
	if err != nil {
		return err
	}
	var size int64
	if err := q.whole("page_size", 0, name.MaxPageSize, &size); err != nil {
		return err
	}
	out, err := a.service.ListLeases(r.Context(), &samyav1.ListLeasesRequest{
		Holder: q["holder"], Entity: q["entity"], PageSize: int32(size), PageToken: q["page_token"],
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, leasesJSON(out))
}

func (a *api) renewLease(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.RenewLeaseRequest{}
	if err := a.read(w, r, fields{
		"lease": text("lease", &in.Lease),
		"ttl":   period("ttl", name.TTL, &in.Ttl),
	}); err != nil {
		return err
	}
	out, err := a.service.RenewLease(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, leaseOf(out.GetLease()))
}

func (a *api) commitLease(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.CommitLeaseRequest{}
	if err := a.read(w, r, fields{
		"lease":      text("lease", &in.Lease),
		"tokens":     whole("tokens", 1, name.MaxTokens, &in.Tokens),
		"request_id": text("request_id", &in.RequestId),
	}); err != nil {
		return err
	}
	out, err := a.service.CommitLease(r.Context(), in)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, committed{
		Lease: in.GetLease(), Tokens: out.GetTokens(), Returned: out.GetReturned(), RequestID: out.GetRequestId(), Site: out.GetSite(),
	})
}

// voidLease is the release of all that a lease holds.
func (a *api) voidLease(w http.ResponseWriter, r *http.Request, _ string) error {
	in, t := &samyav1.ReleaseRequest{}, &tries{}
	if err := a.read(w, r, t.in(fields{
		"lease":      text("lease", &in.Lease),
		"entity":     text("entity", &in.Entity),
		"request_id": text("request_id", &in.RequestId),
		"site":       text("site", &in.Site),
	})); err != nil {
		return err
	}
	if in.GetLease() == "" {
		return apierr.Invalid("lease", "missing")
	}
	return a.releaseOf(w, r, in, t)
}
