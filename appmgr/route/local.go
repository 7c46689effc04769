package route

import (
	"context"
	"net"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Local is a site in the process of a router. Acquires, releases and atomic batches are
// calls of the site. All else goes over a connection within the process.
type Local struct {
	// Site is the name of the site.
	Site string
	// Calls are the calls of the site. They have the errors of package apierr.
	Calls Calls
}

// Calls are calls of a site in the same process. A request may not be changed.
type Calls interface {
	Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)
	Release(ctx context.Context, r *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error)
	Batch(ctx context.Context, r *samyav1.BatchRequest) (*samyav1.BatchResponse, error)
	// Dial makes a connection to the site's API, in clear.
	Dial(ctx context.Context) (net.Conn, error)
}

// local returns the site of a name if it is in the router's own process, else nil.
func (c *Config) local(site string) *Local {
	if c.Local != nil && c.Local.Site == site {
		return c.Local
	}
	return nil
}

// info is where the site can be reached: always here, whatever gossip tells.
func (l *Local) info(region string) SiteInfo {
	return SiteInfo{Name: l.Site, Region: region, Address: l.Site}
}

func (l *Local) dial(ctx context.Context, _ string) (net.Conn, error) { return l.Calls.Dial(ctx) }

// operate makes an acquire or a release and returns its fate. The error is nil only if
// the fate is answered.
func (l *Local) operate(a deadline, op *samyav1.Operation) (*samyav1.Result, fate, error) {
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		resp, f, err := inside(a, op.Acquire, l.Calls.Acquire)
		r := &struct {
			samyav1.Result
			is samyav1.Result_Acquire
		}{is: samyav1.Result_Acquire{Acquire: resp}}
		r.Result.Result = &r.is
		return &r.Result, f, err
	case *samyav1.Operation_Release:
		resp, f, err := inside(a, op.Release, l.Calls.Release)
		return &samyav1.Result{Result: &samyav1.Result_Release{Release: resp}}, f, err
	}
	return nil, answered, apierr.Invalid("operation", "missing: an acquire or a release")
}

// inside makes a call of a site in this process. It lasts as long as its caller's context:
// the site answers at the end of a wait by itself, and no network can lose the answer.
func inside[Q, R any](a deadline, req Q, call func(context.Context, Q) (R, error)) (resp R, _ fate, err error) {
	resp, err = call(a.ctx, req)
	if err != nil && a.ctx.Err() != nil && apierr.ReasonOf(err) == apierr.OutcomeUnknown {
		return resp, lost, a.ctx.Err()
	}
	return resp, answered, err
}
