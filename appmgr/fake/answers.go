package fake

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// BatchFunc answers atomic batches at a fake site.
type BatchFunc func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error)

// Batch grants every batch unless a test sets f.batch. It checks the form of each
// operation: a site without atomic batches must refuse it.
func (f *Site) Batch(ctx context.Context, r *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	f.Calls.Add(1)
	for _, op := range r.GetOperations() {
		if a := op.GetAcquire(); !r.GetAtomic() || a.GetRelay() == 0 || a.GetRequestId() != "" {
			return nil, apierr.New(apierr.Internal, "not as an atomic batch is relayed: %v", r)
		}
	}
	if f.OnBatch != nil {
		return f.OnBatch(ctx, r)
	}
	return f.Granted(r), nil
}

// Granted returns the answer that grants an atomic batch.
func (f *Site) Granted(r *samyav1.BatchRequest) *samyav1.BatchResponse {
	resp := &samyav1.BatchResponse{RequestId: r.GetRequestId(), Site: f.Name}
	for _, op := range r.GetOperations() {
		resp.Results = append(resp.Results, &samyav1.Result{Result: &samyav1.Result_Acquire{
			Acquire: &samyav1.AcquireResponse{Tokens: op.GetAcquire().GetTokens()},
		}})
	}
	return resp
}

// DiesInBatch kills the site once an atomic batch has reached it.
func (f *Site) DiesInBatch() BatchFunc {
	return func(ctx context.Context, _ *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
		f.Kill()
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// TwoOf is an atomic batch of two acquires.
func TwoOf(id string) *samyav1.BatchRequest {
	return &samyav1.BatchRequest{Atomic: true, RequestId: id, Operations: []*samyav1.Operation{
		AcquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3}), AcquireOf(&samyav1.AcquireRequest{Entity: "acme/seats", Tokens: 2}),
	}}
}

// AcquireOf is the operation of an acquire.
func AcquireOf(r *samyav1.AcquireRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}
}

// ReleaseOf is the operation of a release.
func ReleaseOf(r *samyav1.ReleaseRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}}
}

// OfResult returns the short form of a result.
func OfResult(r *samyav1.Result) string {
	switch r := r.GetResult().(type) {
	case *samyav1.Result_Acquire:
		return fmt.Sprintf("acquired %d as %s", r.Acquire.GetTokens(), r.Acquire.GetRequestId())
	case *samyav1.Result_Release:
		return fmt.Sprintf("released %d as %s", r.Release.GetTokens(), r.Release.GetRequestId())
	case *samyav1.Result_Failure:
		e := apierr.FromFailure(r.Failure)
		for _, v := range e.Violations {
			return fmt.Sprintf("%s of %s", e.Reason, v.Field)
		}
		return string(e.Reason)
	}
	return "nothing"
}

// Slowly makes acquires of the entity "slow" last for their full wait.
func Slowly(f *Site) {
	f.OnAcquire = func(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		switch r.GetEntity() {
		case "none":
			return nil, apierr.NotFound("none")
		case "slow":
			select {
			case <-time.After(r.GetWait().AsDuration()):
			case <-ctx.Done():
			}
			return nil, refuse.NoTokens("slow", f.Name, r.GetTokens(), 0, time.Second)
		}
		return &samyav1.AcquireResponse{Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: f.Name, Left: 7}, nil
	}
}

// KeepsTime makes a site judge not_after by its own clock, as sites do.
func (f *Site) KeepsTime() {
	f.OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		switch left := in.GetNotAfter().AsTime().Sub(f.now()); {
		case left < 0:
			return nil, apierr.New(apierr.RequestExpired, "too late by this site's clock")
		case left > 290*time.Second:
			return nil, apierr.Invalid("not_after", "at most 4m50s ahead by this site's clock")
		}
		return &samyav1.AcquireResponse{Tokens: in.GetTokens(), RequestId: in.GetRequestId(), Site: f.Name}, nil
	}
}

// AcquireFunc answers acquires at a fake site.
type AcquireFunc = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)

// Dies kills the site once a request has reached it.
func (f *Site) Dies() AcquireFunc {
	return func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		f.Kill()
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// Hangs answers an acquire when its context ends.
func Hangs(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Refusal answers acquires with err.
func Refusal(err error) AcquireFunc {
	return func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) { return nil, err }
}

// ShareOf is the answer of a site that knows its own share.
func ShareOf(site string, e *samyav1.Entity, left, net int64) *samyav1.GetEntityResponse {
	return &samyav1.GetEntityResponse{Entity: e, Usage: &samyav1.Usage{
		Available: left, Acquired: net, Shares: []*samyav1.Share{{Site: site, Left: left, Net: net, Known: true}},
	}}
}

// Ent is an entity without a name.
func Ent(limit int64, generation, version uint64) *samyav1.Entity {
	return &samyav1.Entity{Name: "e", Limit: limit, Generation: generation, Version: version}
}

// ThreeSites are the sites of OneWay.
var ThreeSites = []string{"us", "eu", "au"}

// Refuse makes a site answer acquires with err.
func (f *Site) Refuse(err error) {
	f.OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) { return nil, err }
}

// From returns the context of a call from a machine.
func From(ctx context.Context, host string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}})
}
