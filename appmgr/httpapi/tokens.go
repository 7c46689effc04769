package httpapi

import (
	"net/http"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var tokenHandlers = map[string]handler{
	"Acquire":     (*api).acquire,
	"Release":     (*api).release,
	"Batch":       (*api).batch,
	"ListLeases":  byQuery((*grpcapi.Service).ListLeases, leasesJSON),
	"RenewLease":  byBody((*grpcapi.Service).RenewLease, renewedJSON),
	"CommitLease": (*api).commitLease,
	"VoidLease":   (*api).voidLease,
}

func (a *api) acquire(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.AcquireRequest{Entity: entity}
	if err := a.readBody(w, r, func(body []byte) error {
		if plainAcquire(body, in) {
			return nil
		}
		return decodeJSON(body, fieldsOf(in))
	}); err != nil {
		return err
	}
	if err := acquireLacks(in); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), in, a.Service.AcquireInPlace)
	a.tellQuota(w, entity, out, err)
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
		return decodeJSON(body, fieldsOf(in))
	}); err != nil {
		return err
	}
	if err := releaseLacks(in); err != nil {
		return err
	}
	return a.releaseOf(w, r, in)
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

func (a *api) commitLease(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.CommitLeaseRequest{}
	if err := a.read(w, r, fieldsOf(in)); err != nil {
		return err
	}
	return answer(w, r, in, a.Service.CommitLease, func(out *samyav1.CommitLeaseResponse) committed {
		return committed{
			Lease: in.GetLease(), Tokens: out.GetTokens(), Returned: out.GetReturned(), RequestID: out.GetRequestId(), Site: out.GetSite(),
		}
	})
}

// voidLease releases all tokens of a lease.
func (a *api) voidLease(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.ReleaseRequest{}
	fs := fieldsOf(in)
	delete(fs, "tokens")
	if err := a.read(w, r, fs); err != nil {
		return err
	}
	if in.GetLease() == "" {
		return apierr.Invalid("lease", "missing")
	}
	return a.releaseOf(w, r, in)
}
