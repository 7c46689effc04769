package explore

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// The laws of package handoff, for every state of all sites.

// holding is what a site has, durably or not.
type holding struct {
	site avantan.SiteID
	has  *estate
	hand *handoff.State
	// grants says that the site serves clients that acquire.
	grants bool
}

// bequeathed are the tokens of open bequests that no books have, less those that two books
// count as out. If the heir has not taken the bequest no books have its tokens left, and a
// net below zero is counted as zero. If the heir has, both sites count the tokens out, and no
// books have a debt.
func bequeathed(all *[Sites]holding) (sum avantan.Tokens) {
	for i := range all {
		b := all[i].hand.Open
		if b == nil {
			continue
		}
		if takenBy(all, i, b) {
			sum += b.Estate.Owed - max(0, b.Estate.Net)
			for k := range b.Estate.Items {
				sum -= b.Estate.Items[k].Tokens
			}
		} else {
			sum += b.Estate.Left - max(0, -b.Estate.Net)
		}
	}
	return sum
}

// takenBy reports whether an open bequest of a site is taken.
func takenBy(all *[Sites]holding, from int, b *handoff.Bequest) bool {
	for i := range all {
		if all[i].site == b.Heir {
			return takenOf(all[i].hand, all[from].site).Number >= b.Number
		}
	}
	return false
}

// checkHoldings compares the nets with the tokens that clients have, and what the sites may
// still grant with the limit.
func checkHoldings(all *[Sites]holding, limit avantan.Tokens, fail func(invariant, format string, args ...any)) {
	var net, out, twice, usable avantan.Tokens
	ended := 0
	for i := range all {
		h := &all[i]
		net += h.has.net
		out += h.has.out
		if h.has.ended {
			ended++
		}
		if h.grants {
			usable += max(0, h.has.left)
		}
		b := h.hand.Open
		if b == nil {
			continue
		}
		switch {
		case takenBy(all, i, b):
			twice += max(0, b.Estate.Net)
			for k := range b.Estate.Items {
				twice += b.Estate.Items[k].Tokens
			}
		case b.Estate.Net < 0:
			twice -= b.Estate.Net
		}
	}
	if net != out+twice {
		fail(NetLaw, "the nets are %d, clients have %d, and open bequests count %d twice", net, out, twice)
	}
	if ended > 1 {
		fail(LeaseOnce, "%d sites have ended the lease", ended)
	}
	if usable+out > limit {
		fail(OverGrant, "clients have %d tokens and may get %d more, of %d", out, usable, limit)
	}
}
