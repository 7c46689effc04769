package explore

import (
	"encoding/binary"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// estate is what a site has of an entity, as clients and handoffs see it.
type estate struct {
	left avantan.Tokens
	net  avantan.Tokens
	// lease are the tokens of a lease of this site, part of net; 0 for no lease.
	lease avantan.Tokens
	// ended says that a lease ended here.
	ended bool
	// out are the tokens that clients have by requests here, less those that they gave back
	// here: what net would be if nothing were handed over.
	out avantan.Tokens
}

func (e *estate) key(dst []byte) []byte {
	for _, n := range []avantan.Tokens{e.left, e.net, e.lease, e.out} {
		dst = binary.AppendVarint(dst, int64(n))
	}
	return appendBool(dst, e.ended)
}

// leases gives a site that leaves a lease to begin with.
func (e *estate) leases() {
	e.lease = 1
	e.serve(e.lease)
}

// serve grants a client tokens, or takes them back if below zero.
func (e *estate) serve(tokens avantan.Tokens) {
	e.left, e.net, e.out = e.left-tokens, e.net+tokens, e.out+tokens
}

// endLease ends the lease.
func (e *estate) endLease() {
	e.serve(-e.lease)
	e.lease, e.ended = 0, true
}

// holds reports whether there is anything to hand over.
func (e *estate) holds() bool { return e.left != 0 || e.net != 0 }

// The books change by handoffs as in site/core.

// Holds implements handoff.Ledger.
func (e *estate) Holds() (left, net avantan.Tokens) { return e.left, e.net }

// Items implements handoff.Ledger.
func (e *estate) Items(int) (items []handoff.Item, held avantan.Tokens) {
	if e.lease == 0 {
		return nil, 0
	}
	return []handoff.Item{{Data: []byte("lease"), Tokens: e.lease}}, e.lease
}

// Fits implements handoff.Ledger.
func (e *estate) Fits(avantan.SiteID, *handoff.Estate) error { return nil }

// Debit implements handoff.Ledger.
func (e *estate) Debit(_ avantan.SiteID, tokens avantan.Tokens) { e.left -= tokens }

// Credit implements handoff.Ledger.
func (e *estate) Credit(_ avantan.SiteID, tokens avantan.Tokens) { e.left += tokens }

// Count implements handoff.Ledger.
func (e *estate) Count(tokens avantan.Tokens) { e.net += tokens }

// TakeItem implements handoff.Ledger.
func (e *estate) TakeItem(_ avantan.SiteID, item handoff.Item) {
	e.Count(item.Tokens)
	e.lease += item.Tokens
}

// DropItem implements handoff.Ledger.
func (e *estate) DropItem(heir avantan.SiteID, item handoff.Item) {
	e.Count(-item.Tokens)
	e.LoseItem(heir, item)
}

// LoseItem implements handoff.Ledger.
func (e *estate) LoseItem(avantan.SiteID, handoff.Item) { e.lease = 0 }

// LoseNet implements handoff.Ledger. The entity is an allocation.
func (*estate) LoseNet(avantan.SiteID, avantan.Tokens) {}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}
