package access

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/methods"
)

// HTTP lets a request of the HTTP API in as a call of a gRPC method, or returns why not.
// The request's operation must go through Call or Permit.
func (g *Guard) HTTP(r *http.Request, method string) (context.Context, error) {
	s, err := g.admit(method, shownBy(r))
	if s != nil {
		s.address = r.RemoteAddr
	}
	if err != nil {
		return nil, g.refuse(s, r.RemoteAddr, nil, err)
	}
	if s.rule.Least != methods.Nobody && s.caller.Kind == "" {
		if err := g.buckets.take(s.caller.Name, 1); err != nil {
			return nil, g.refuse(s, r.RemoteAddr, nil, err)
		}
	}
	return context.WithValue(r.Context(), sessionKey{}, s), nil
}

// Streaming returns a context for a request that lasts; ctx must come from HTTP. The
// context ends, with the reason as its cause, when the caller may not go on.
func (g *Guard) Streaming(ctx context.Context, r *http.Request) (context.Context, func()) {
	s, shows := sessionOf(ctx), shownBy(r)
	return g.streaming(ctx, func() error { return g.again(s, shows) })
}

// Over returns why the caller of a request that lasts may not go on; nil if it may.
func Over(ctx context.Context) error {
	if e, ok := errors.AsType[*apierr.Error](context.Cause(ctx)); ok {
		return e
	}
	return nil
}

func shownBy(r *http.Request) credentials {
	return credentials{authorization: r.Header.Get("Authorization"), chain: chainOf(r)}
}

func chainOf(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// Permit returns nil if the caller of a request that HTTP let in may make it, and the
// reason if not.
func Permit(ctx context.Context, request any) error {
	s := sessionOf(ctx)
	if s == nil {
		return apierr.New(apierr.PermissionDenied, "nobody has let this request in")
	}
	if err := s.permit(request); err != nil {
		return s.guard.refuse(s, s.address, request, err)
	}
	if n := weight(request); n > 1 && s.caller.Kind == "" {
		// HTTP has counted the first operation.
		return s.guard.refusal(s.guard.buckets.take(s.caller.Name, n-1))
	}
	return nil
}

// Call makes the operation of a request that HTTP let in. It checks the request against
// the caller's entities, writes a change to the audit log, and removes other callers'
// entities from the answer.
func Call[In, Out any](ctx context.Context, in In, do func(context.Context, In) (Out, error)) (out Out, err error) {
	if err := Permit(ctx, in); err != nil {
		return out, err
	}
	s := sessionOf(ctx)
	err = s.guard.audited(s, in, func() (err error) {
		out, err = do(ctx, in)
		return err
	})
	if err == nil {
		cut(s.scope, out)
	}
	return out, err
}
