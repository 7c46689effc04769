package core

import (
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// A lease of share has its holder grant tokens in place of the site. It takes tokens left, as
// any acquire does, and they are held: they are out, do not come back by the clock, and refill
// nothing here. In a bucket's place the holder has a bucket of as many tokens, full at the
// beginning of the lease, which refills itself once a period. In a window's place it grants as
// many tokens within any time as long as a window.
//
// Levels and shares of all sites and holders together add up to the limit at most, so the
// bounds of rate quotas hold. The holder of a lease that ends may have granted all its tokens
// just before. So the tokens come back as if the site granted them at that moment. In a window
// they come back two windows later: the holder's clock may be ahead by a window.
//
// The held tokens of an entity are the tokens of its leases of share, which are durable with
// the grant and with their end. So are they for volatile quotas.

// shareable reports whether an entity has leases of share: buckets and windows without a
// parent. Each token of a sliding window comes back by the time of its grant, which the site
// would not know. Nor would a parent know of a holder's grants. A lease from before a move
// below a parent is not renewed.
func shareable(e *entity) bool {
	r := rateOf(e)
	return r != nil && e.parent() == nil && (r.calendar != nil || r.Terms.Kind == rates.Bucket)
}

// unshareable reports whether an acquire asks for a lease of share that the entity cannot have.
func unshareable(e *entity, t *input.LeaseTerms) bool { return t != nil && t.Share && !shareable(e) }

// unheld is the number of tokens out that no lease of share holds.
func (r *rate) unheld(e *entity) Tokens { return e.books.Net() - r.held }

// hold has tokens out be held.
func (c *common) hold(e *entity, tokens Tokens) {
	r := rateOf(e)
	if r == nil {
		return
	}
	r.held += tokens
	// Also of a volatile quota, so that the stored books have what the lease holds.
	c.dirtyBooks(e)
}

// unhold has held tokens be out as any others.
func (c *common) unhold(e *entity, tokens Tokens) {
	r := rateOf(e)
	if r == nil {
		return
	}
	r.held = max(0, r.held-tokens)
	c.touchBooks(e)
}

// endShare has tokens of a lease of share come back as tokens that are granted now.
func (c *common) endShare(e *entity, tokens Tokens) {
	c.unhold(e, tokens)
	r := rateOf(e)
	if r == nil || r.calendar == nil || tokens <= 0 {
		return
	}
	// The site may not have begun the window that it is in.
	now, _ := r.calendar.At(c.now.Wall)
	r.Ended.Add(max(now, r.Window), tokens)
	c.dirtyRecord(e)
}

// indebted reports whether more tokens of an entity are out than its limit allows, as far as
// the site knows. A lease of share is then not renewed: its end pays.
func indebted(e *entity) bool {
	d := e.debt()
	return d != nil && d.amount > 0
}

// restoreShare takes up a restored lease.
func restoreShare(e *entity, l *stored.Lease) {
	if r := rateOf(e); r != nil && l.Share {
		r.held += l.Tokens
	}
}
