package star

import (
	"errors"
	"fmt"
	"maps"

	"github.com/samya-db/samya/avantan"
)

// books is a minimal ledger: it offers a part of its tokens, and shares a pool out
// evenly.
type books struct {
	self   SiteID
	left   Tokens
	net    Tokens
	offers map[ID]Tokens
	// got holds the values applied here.
	got map[ID]*Value
	// ended holds the values of instances that ended here without their outcome.
	ended map[ID]*Value
	// half is the part of left that is offered without press: left/half.
	half Tokens
	want Tokens
	// aloof: it takes no part in instances that others lead.
	aloof bool
	// refuses: it can apply no value.
	refuses bool

	c *cluster
}

func (b *books) clone() *books {
	d := *b
	d.offers, d.got, d.ended = maps.Clone(b.offers), maps.Clone(b.got), maps.Clone(b.ended)
	return &d
}

func (b *books) Pledge(id ID, press avantan.Press) (avantan.Contribution, bool) {
	if b.aloof && id.Leader != b.self {
		return avantan.Contribution{}, false
	}
	if _, twice := b.offers[id]; twice || b.got[id] != nil || b.ended[id] != nil {
		b.c.fail("exclusivity: %s: a second offer in %v", b.self, id)
	}
	offer := b.left
	if press == avantan.PressSpare && offer > 0 {
		offer /= b.half
	}
	b.left -= offer
	b.offers[id] = offer
	return avantan.Contribution{Site: b.self, Offered: offer, Wanted: b.want, Queued: b.want}, true
}

func (b *books) TakeBack(id ID, pledge avantan.Contribution) {
	offer, ok := b.offers[id]
	if !ok || offer != pledge.Offered {
		b.c.fail("integrity: %s: taking back %d of %v, offered %d, %v", b.self, pledge.Offered, id, offer, ok)
	}
	if v := b.c.decided[id]; v != nil {
		if _, in := v.Of(b.self); in {
			b.c.fail("agreement: %s takes its offer of %v back, which is decided", b.self, id)
		}
	}
	delete(b.offers, id)
	b.left += offer
}

var errPolicy = errors.New("unknown policy")

func (b *books) CanApply(v *Value) error {
	if v.Policy != "even" || b.refuses {
		return fmt.Errorf("%w %q", errPolicy, v.Policy)
	}
	return nil
}

// grants shares out evenly. The first sites get a token of the remainder each.
func grants(v *Value) map[SiteID]Tokens {
	var pool Tokens
	for _, c := range v.Contributions {
		pool += c.Offered
	}
	n := Tokens(len(v.Contributions))
	share, rest := pool/n, pool%n
	if rest < 0 {
		share, rest = share-1, rest+n
	}
	g := make(map[SiteID]Tokens)
	for i, c := range v.Contributions {
		g[c.Site] = share
		if Tokens(i) < rest {
			g[c.Site]++
		}
	}
	return g
}

func (b *books) Apply(id ID, v *Value) {
	c, in := v.Of(b.self)
	if offer, ok := b.offers[id]; !in || !ok || offer != c.Offered || b.got[id] != nil {
		b.c.fail("integrity: %s applies %v of %v: set aside %d, %v; before: %v", b.self, v, id, offer, ok, b.got[id] != nil)
	}
	if built := b.c.values[id]; built == nil || !built.Equal(v) {
		b.c.fail("integrity: %s applies %v of %v, its leader proposed %v", b.self, v, id, built)
	}
	delete(b.offers, id)
	b.got[id] = v.Clone()
	b.left += grants(v)[b.self]
}

func (b *books) Conclude(id ID, v *Value) {
	c, in := v.Of(b.self)
	if offer, ok := b.offers[id]; !in || !ok || offer != c.Offered || b.got[id] != nil || b.ended[id] != nil {
		b.c.fail("integrity: %s concludes %v of %v: set aside %d, %v", b.self, v, id, offer, ok)
	}
	delete(b.offers, id)
	b.ended[id] = v.Clone()
	b.left += min(c.Offered, grants(v)[b.self])
}

// retired is what a site that has concluded has less than by the outcome as it is known.
func retired(site SiteID, v *Value, decided bool) Tokens {
	c, _ := v.Of(site)
	if decided {
		return grants(v)[site] - min(c.Offered, grants(v)[site])
	}
	return c.Offered - min(c.Offered, grants(v)[site])
}
