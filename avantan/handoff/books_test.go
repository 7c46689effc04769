package handoff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

type (
	SiteID = avantan.SiteID
	Tokens = avantan.Tokens
	Tick   = avantan.Tick
)

// lease is an item as its site knows it.
type lease struct {
	id     string
	tokens Tokens
}

// books is a minimal ledger. All changes of its lists make new ones, so that a copy of
// books shares them.
type books struct {
	self SiteID
	// left and net are the books proper.
	left, net Tokens
	// plain are the tokens that clients acquired here less those that they released here,
	// without those of leases.
	plain Tokens
	// leases are held here, made were acquired here, ended have ended here.
	leases []lease
	made   []lease
	ended  []string
	// dropped are the bequests to heirs that were lost, forgot what was taken of
	// leavers that were lost.
	dropped []Bequest
	forgot  []Taken
	// full: it can take nothing.
	full bool

	c *cluster
}

func (b *books) Holds() (left, net Tokens) { return b.left, b.net }

func (b *books) Items(limit int) (items []Item, held Tokens) {
	items = []Item{}
	for _, l := range b.leases {
		if len(items) < limit {
			items = append(items, Item{Data: []byte(l.id), Tokens: l.tokens})
		}
		held += l.tokens
	}
	return items, held
}

var (
	errFull   = errors.New("full")
	errFrozen = errors.New("the item is frozen")
)

func (b *books) Fits(leaver SiteID, e *Estate) error {
	if leaver == b.self || e.empty() {
		b.c.fail("fits: %s is asked for %+v of %s", b.self, *e, leaver)
	}
	if b.full {
		return errFull
	}
	for _, i := range e.Items {
		if frozen(b.c.node(b.self).m.State(), string(i.Data)) {
			return errFrozen
		}
	}
	return nil
}

func (b *books) Debit(peer SiteID, tokens Tokens) {
	if tokens < 1 || peer == b.self {
		b.c.fail("debit: %s for %s: %d", b.self, peer, tokens)
	}
	b.left -= tokens
}

func (b *books) Credit(peer SiteID, tokens Tokens) {
	if tokens < 1 || peer == b.self {
		b.c.fail("credit: %s from %s: %d", b.self, peer, tokens)
	}
	b.left += tokens
}

func (b *books) Count(tokens Tokens) {
	if tokens == 0 {
		b.c.fail("count: %s nothing", b.self)
	}
	b.net += tokens
}

func (b *books) TakeItem(_ SiteID, item Item) {
	b.add(lease{string(item.Data), item.Tokens})
	b.net += item.Tokens
}

func (b *books) DropItem(_ SiteID, item Item) {
	l := b.remove(string(item.Data))
	if l.tokens != item.Tokens {
		b.c.fail("items: %s drops %v, it had %+v", b.self, item, l)
	}
	b.net -= item.Tokens
}

func (b *books) LoseItem(_ SiteID, item Item) { b.remove(string(item.Data)) }

func (b *books) LoseNet(heir SiteID, tokens Tokens) {
	if tokens < 1 || heir == b.self {
		b.c.fail("lose: %s for %s: %d", b.self, heir, tokens)
	}
}

// add stores a lease. A site that has a lease of that name puts the two together.
func (b *books) add(l lease) {
	i := slices.IndexFunc(b.leases, func(have lease) bool { return have.id == l.id })
	if i < 0 {
		b.leases = append(slices.Clip(b.leases), l)
		return
	}
	if !b.c.copies {
		b.c.fail("items: %s takes %s twice", b.self, l.id)
	}
	b.leases = slices.Clone(b.leases)
	b.leases[i].tokens += l.tokens
}

// remove forgets a lease.
func (b *books) remove(id string) lease {
	i := slices.IndexFunc(b.leases, func(l lease) bool { return l.id == id })
	if i < 0 {
		b.c.fail("items: %s has no %s to drop", b.self, id)
		return lease{}
	}
	l := b.leases[i]
	b.leases = slices.Delete(slices.Clone(b.leases), i, i+1)
	return l
}

func (b *books) holds(id string) bool {
	return slices.ContainsFunc(b.leases, func(l lease) bool { return l.id == id })
}

// acquire grants plain tokens, release takes plain tokens back.
func (b *books) acquire(tokens Tokens) {
	b.left -= tokens
	b.net += tokens
	b.plain += tokens
}

func (b *books) release(tokens Tokens) { b.acquire(-tokens) }

// lend grants a lease.
func (b *books) lend(l lease) {
	b.left -= l.tokens
	b.net += l.tokens
	b.add(l)
	b.made = append(slices.Clip(b.made), l)
}

// end ends a lease; its tokens come back.
func (b *books) end(id string) {
	l := b.remove(id)
	b.left += l.tokens
	b.net -= l.tokens
	b.ended = append(slices.Clip(b.ended), id)
}

// frozen reports whether a lease is in the open bequest of a state.
func frozen(s *State, id string) bool {
	return s.Open != nil && slices.ContainsFunc(s.Open.Estate.Items, func(i Item) bool { return string(i.Data) == id })
}

// note keeps what a site is about to forget of a site that is lost.
func (b *books) note(s *State, site SiteID) {
	if s.Open != nil && s.Open.Heir == site {
		b.dropped = append(slices.Clip(b.dropped), *s.Open)
	}
	if t := s.taken(site); t.Number > 0 {
		b.forgot = append(slices.Clip(b.forgot), t)
	}
}

// took returns the number of the last bequest of a leaver that a site has ever taken.
func (b *books) took(s *State, leaver SiteID) Taken {
	t := s.taken(leaver)
	for _, f := range b.forgot {
		if f.Leaver == leaver && f.Number > t.Number {
			t = f
		}
	}
	return t
}

func (b *books) fingerprint(dst []byte) []byte {
	for _, n := range []Tokens{b.left, b.net, b.plain} {
		dst = binary.AppendVarint(dst, int64(n))
	}
	dst = fmt.Append(dst, b.leases, b.made, b.ended, b.forgot, b.full)
	for i := range b.dropped {
		dst = (&State{Open: &b.dropped[i]}).Fingerprint(dst)
	}
	return dst
}
