package core

import (
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// request is an acquire or release as it is remembered.
type request struct {
	key  attempt.Key
	body uint64
	kind stored.RequestKind
	// entity is the name of the entity that the request names.
	entity string
	// tokens is the number of tokens asked for, least the fewest to be content with.
	tokens, least Tokens
	lease         *input.LeaseTerms
	// once says that nobody repeats the request.
	once bool
	// tries has in Tried, once the request is placed, the sites to be asked.
	tries input.Tries
	// trace is the span of the request if its trace is recorded; else nil.
	trace *spanctx.Context
	// home is the lease of another site that a release names.
	home attempt.Key
	// parts are the parts of an AllRequest; entity is then the first part's entity and
	// tokens the sum.
	parts []input.Part
	// named are the entities of the parts, once the request is charged.
	named []*entity
}

func acquireRequest(a *input.Acquire) (r request) {
	r.key, r.kind, r.entity, r.tokens, r.least = a.Request, stored.AcquireRequest, a.Entity, a.Tokens, a.Tokens
	r.lease, r.tries, r.once, r.trace = a.Lease, a.Tries, a.Once, a.Trace
	if a.Least > 0 {
		r.least = a.Least
	}
	if a.Lease != nil {
		r.kind = stored.LeasedRequest
	}
	r.body = bodyHash(r.kind, a.Entity, a.Tokens)
	if r.least != r.tokens {
		r.body = mixBody(r.body, uint64(r.least))
	}
	if a.Lease != nil {
		r.body = mixBody(mixBody(r.body, uint64(a.Lease.TTL)), textHash(a.Lease.Holder))
		if a.Lease.Share {
			r.body = mixBody(r.body, shareBody)
		}
	}
	return r
}

func allRequest(a *input.AcquireAll) request {
	r := request{
		key: a.Request, kind: stored.AllRequest, entity: a.Parts[0].Entity, parts: a.Parts, tries: a.Tries, once: a.Once, trace: a.Trace,
		body: bodyHash(stored.AllRequest, "", Tokens(len(a.Parts))),
	}
	for _, p := range a.Parts {
		r.body = mixBody(mixBody(r.body, textHash(p.Entity)), uint64(p.Tokens))
		r.tokens += p.Tokens
	}
	r.least = r.tokens
	return r
}

func releaseRequest(r *input.Release) request {
	q := request{key: r.Request, kind: stored.ReleaseRequest, entity: r.Entity, tokens: r.Tokens, tries: r.Tries}
	if r.Lease != nil {
		q.kind = stored.ReturnRequest
	}
	q.body = bodyHash(q.kind, r.Entity, r.Tokens)
	if r.Lease != nil {
		q.body = mixBody(mixBody(q.body, textHash(string(r.Lease.Home))), textHash(string(r.Lease.Request[:])))
	}
	return q
}

// until is the tick at which the acquire expires if it waits.
func (r *request) until(now input.Now, wait Tick) Tick {
	if notAfter := r.tries.NotAfter; notAfter != 0 {
		wait = min(wait, Tick(max(0, notAfter-now.Wall)))
	}
	return now.Tick + wait
}

// bodyHash is the FNV-1a hash of everything that must be the same in a repeat.
func bodyHash(kind stored.RequestKind, entity string, tokens Tokens) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	h = (h ^ uint64(kind)) * prime
	for i := range 8 {
		h = (h ^ uint64(byte(tokens>>(8*i)))) * prime
	}
	for i := range len(entity) {
		h = (h ^ uint64(entity[i])) * prime
	}
	return h
}

// shareBody stands for a lease of share in the hash of a body.
const shareBody = 0x73686172

// mixBody adds a value to the hash of a body.
func mixBody(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// textHash is the FNV-1a hash of a text.
func textHash(s string) uint64 { return bodyHash(0, s, 0) }
