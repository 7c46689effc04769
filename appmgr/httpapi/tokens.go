package httpapi

import (
	"net/http"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// tries are the fields in which acquires and releases tell of their attempts.
type tries struct {
	attempt  int64
	tried    []string
	notAfter *timestamppb.Timestamp
}

// in adds the fields of t to fs, the fields of a body.
func (t *tries) in(fs fields) fields {
	fs["attempt"] = whole("attempt", 1, name.MaxAttempt, &t.attempt)
	fs["tried"] = texts("tried", &t.tried)
	fs["not_after"] = instant("not_after", &t.notAfter)
	return fs
}

func (a *api) acquire(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.AcquireRequest{Entity: entity}
	if err := a.readBody(w, r, func(body []byte) error {
		if plainAcquire(body, in) {
			return nil
		}
		return decodeAcquire(body, in)
	}); err != nil {
		return err
	}
	if err := acquireLacks(in); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), in, a.Service.AcquireInPlace)
	if err != nil {
		return err
	}
	return writeMoved(w, acquiredJSON(entity, out))
}

func acquiredJSON(entity string, out *samyav1.AcquireResponse) *moved {
	return &moved{
		Entity: entity, Tokens: out.GetTokens(), RequestID: out.GetRequestId(), Site: out.GetSite(), Left: out.GetLeft(),
		Lease: leaseOf(out.GetLease()),
	}
}

// decodeAcquire reads the body of an acquire.
func decodeAcquire(body []byte, in *samyav1.AcquireRequest) error {
	fs, end := acquireFields(in)
	defer end()
	return decodeJSON(body, fs)
}

// acquireFields returns the fields of an acquire except its entity. The caller must call
// end before it uses the acquire.
func acquireFields(in *samyav1.AcquireRequest) (fs fields, end func()) {
	t, terms := &tries{}, &samyav1.LeaseTerms{}
	fs = t.in(fields{
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
	})
	return fs, func() { in.Attempt, in.Tried, in.NotAfter = uint32(t.attempt), t.tried, t.notAfter }
}

// acquireLacks returns the error for a required field that a decoded acquire lacks.
func acquireLacks(in *samyav1.AcquireRequest) error {
	switch {
	case in.GetTokens() == 0:
		return apierr.Invalid("tokens", "missing")
	case in.GetLease() != nil && in.GetLease().GetTtl() == nil:
		return apierr.Invalid("lease.ttl", "missing")
	}
	return nil
}

func (a *api) release(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.ReleaseRequest{Entity: entity}
	if err := a.readBody(w, r, func(body []byte) error {
		if plainRelease(body, in) {
			return nil
		}
		return decodeRelease(body, in)
	}); err != nil {
		return err
	}
	if err := releaseLacks(in); err != nil {
		return err
	}
	return a.releaseOf(w, r, in)
}

// decodeRelease reads the body of a release.
func decodeRelease(body []byte, in *samyav1.ReleaseRequest) error {
	fs, end := releaseFields(in)
	defer end()
	return decodeJSON(body, fs)
}

// releaseFields is acquireFields for a release.
func releaseFields(in *samyav1.ReleaseRequest) (fs fields, end func()) {
	t := &tries{}
	fs = t.in(fields{
		"tokens":     whole("tokens", 1, name.MaxTokens, &in.Tokens),
		"lease":      text("lease", &in.Lease),
		"request_id": text("request_id", &in.RequestId),
		"site":       text("site", &in.Site),
	})
	return fs, func() { in.Attempt, in.Tried, in.NotAfter = uint32(t.attempt), t.tried, t.notAfter }
}

// releaseLacks returns the error for a required field that a decoded release lacks.
func releaseLacks(in *samyav1.ReleaseRequest) error {
	if in.GetTokens() == 0 && in.GetLease() == "" {
		return apierr.Invalid("tokens", "missing")
	}
	return nil
}

// releaseOf makes a release and writes its answer.
func (a *api) releaseOf(w http.ResponseWriter, r *http.Request, in *samyav1.ReleaseRequest) error {
	out, err := access.Call(r.Context(), in, a.Service.ReleaseInPlace)
	if err != nil {
		return err
	}
	return writeMoved(w, releasedJSON(in.GetEntity(), out))
}

func releasedJSON(entity string, out *samyav1.ReleaseResponse) *moved {
	return &moved{
		Entity: entity, Tokens: out.GetTokens(), RequestID: out.GetRequestId(), Site: out.GetSite(), Left: out.GetLeft(),
		Parked: out.GetParked(),
	}
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
	out, err := access.Call(r.Context(), &samyav1.ListLeasesRequest{
		Holder: q["holder"], Entity: q["entity"], PageSize: int32(size), PageToken: q["page_token"],
	}, a.Service.ListLeases)
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
	out, err := access.Call(r.Context(), in, a.Service.RenewLease)
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
	out, err := access.Call(r.Context(), in, a.Service.CommitLease)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, committed{
		Lease: in.GetLease(), Tokens: out.GetTokens(), Returned: out.GetReturned(), RequestID: out.GetRequestId(), Site: out.GetSite(),
	})
}

// voidLease releases all tokens of a lease.
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
	in.Attempt, in.Tried, in.NotAfter = uint32(t.attempt), t.tried, t.notAfter
	return a.releaseOf(w, r, in)
}
