package client

import (
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// AcquireOption changes an acquire.
type AcquireOption interface {
	toAcquire(m *movement)
}

// ReleaseOption changes a release.
type ReleaseOption interface {
	toRelease(m *movement)
}

// Option changes an acquire or a release.
type Option interface {
	AcquireOption
	ReleaseOption
}

type acquireOption func(*movement)

func (o acquireOption) toAcquire(m *movement) { o(m) }

type releaseOption func(*movement)

func (o releaseOption) toRelease(m *movement) { o(m) }

type option func(*movement)

func (o option) toAcquire(m *movement) { o(m) }
func (o option) toRelease(m *movement) { o(m) }

// Wait is how long an acquire may wait for tokens to come from other sites: 0 to 60s. 0
// answers at once. The acquire waits no longer than the context allows. Without Wait the
// site decides, 5s by default.
func Wait(d time.Duration) AcquireOption {
	return acquireOption(func(m *movement) { m.acquire.Wait, m.wait = durationpb.New(d), d })
}

// AtLeast lets an acquire get fewer tokens, at least n, once it is known that not all can
// be granted.
func AtLeast(n int64) AcquireOption {
	return acquireOption(func(m *movement) { m.acquire.MinTokens = n })
}

// DryRun makes an acquire tell how many tokens would be granted at once. Nothing moves.
func DryRun() AcquireOption {
	return acquireOption(func(m *movement) { m.acquire.DryRun = true })
}

// Holder names the holder of a lease, for lists of leases: up to 128 printable ASCII
// characters.
func Holder(name string) AcquireOption {
	return acquireOption(func(m *movement) {
		if m.acquire.Lease == nil {
			m.fault = errors.New("a holder without a lease: use AcquireLease")
			return
		}
		m.acquire.Lease.Holder = name
	})
}

// Share makes a lease a share of a rate quota of kind bucket or window, for 10 minutes at
// most: until the lease ends, its holder grants as many tokens in each period in place of the
// site. See [Lease].Share.
func Share() AcquireOption {
	return acquireOption(func(m *movement) {
		if m.acquire.Lease == nil {
			m.fault = errors.New("a share without a lease: use AcquireLease")
			return
		}
		m.acquire.Lease.Share = true
	})
}

// RequestID is an option that names the request, in place of a generated id: 1 to 128
// printable ASCII characters. A repeat has the same id and arguments, and gets the first
// answer: a repeat of an acquire or a release at the same site, and a repeat of the
// creation of an entity or the change of a limit anywhere.
type RequestID string

func (id RequestID) toAcquire(m *movement)                   { m.id = string(id) }
func (id RequestID) toRelease(m *movement)                   { m.id = string(id) }
func (id RequestID) toEntity(r *samyav1.CreateEntityRequest) { r.RequestId = string(id) }
func (id RequestID) toLimit(r *samyav1.UpdateEntityRequest)  { r.RequestId = string(id) }

// Resume goes on with a request of unknown outcome. err is the error of that request, or
// an *Error made from kept fields. Entity, tokens and other arguments must be the same. A
// nil error changes nothing, so that a loop can pass the error of the round before.
func Resume(err error) Option {
	return option(func(m *movement) {
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Attempt == 0 || e.RequestID == "" {
			m.fault = errors.New("an error that does not tell how to go on")
			return
		}
		m.resume(e)
	})
}

// ofLease makes a release a release of a lease's tokens.
func ofLease(name, home string) ReleaseOption {
	return releaseOption(func(m *movement) { m.release.Lease, m.home = name, home })
}

// lease makes an acquire an acquire of a lease.
func lease(ttl time.Duration) AcquireOption {
	return acquireOption(func(m *movement) { m.acquire.Lease = &samyav1.LeaseTerms{Ttl: durationpb.New(ttl)} })
}
