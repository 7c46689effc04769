package explore

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// The laws of package handoff, for every state of all sites.

// bequeathed are the tokens of open bequests that no books have: left, if the heir has not
// taken the bequest, or a debt, if the heir has.
func (c *checker) bequeathed() (sum avantan.Tokens) {
	for i := range c.views {
		b := c.views[i].hand.Open
		if b == nil {
			continue
		}
		if _, taken := c.taken(c.views[i].site, b); taken {
			sum += b.Estate.Owed
		} else {
			sum += b.Estate.Left
		}
	}
	return sum
}

// taken reports whether an open bequest is taken, and how.
func (c *checker) taken(from avantan.SiteID, b *handoff.Bequest) (handoff.Taken, bool) {
	t := takenOf(c.views[c.index(b.Heir)].hand, from)
	return t, t.Number >= b.Number
}

// overGrant compares the nets with the tokens that clients have, and what the sites may
// still grant with the limit.
func (c *checker) overGrant(limit avantan.Tokens) {
	var net, out, twice, usable avantan.Tokens
	ended := 0
	for i := range c.views {
		w := &c.views[i]
		net += w.books.net
		out += w.books.out
		if w.books.ended {
			ended++
		}
		if !c.drained() || w.books.view.Has(w.site) || c.without[learnerGrantsNothing] {
			usable += max(0, w.books.left)
		}
		b := w.hand.Open
		if b == nil {
			continue
		}
		t, taken := c.taken(w.site, b)
		switch {
		case taken:
			twice += t.Accepted
			for k := range b.Estate.Items {
				twice += b.Estate.Items[k].Tokens
			}
		case b.Estate.Net < 0:
			twice -= b.Estate.Net
		}
	}
	if net != out+twice {
		c.fail(NetLaw, "the nets are %d, clients have %d, and open bequests count %d twice", net, out, twice)
	}
	if ended > 1 {
		c.fail(LeaseOnce, "%d sites have ended the lease", ended)
	}
	if usable+out > limit {
		c.fail(OverGrant, "clients have %d tokens and may get %d more, of %d", out, usable, limit)
	}
}
