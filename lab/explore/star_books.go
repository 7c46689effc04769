package explore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
)

// starBooks are a site's books of an entity for the any-subset variant, with a log of
// applied instances. They offer few tokens. So an instance sees no tokens moved by
// other instances, and only the protocol ties instances together. A site without tokens
// that does not lead takes no part.
type starBooks struct {
	estate
	site avantan.SiteID
	// leaves says that the site takes part in no further instance.
	leaves bool
	// offer is how much the site offers to an instance. gains is set if the site asks for
	// a token more than that though it does not lead.
	offer avantan.Tokens
	gains bool
	// offers are the slices set aside, in the order of their instances.
	offers []starOffer
	// log are the instances applied, in the order of the instances.
	log []starEntry
	// ended are the instances that ended without their outcome, in the same order.
	ended []starEntry
	// broken collects the violations that the books see.
	broken []Violation

	values *values
	// concludes is what the site gets where nobody left knows the outcome.
	concludes func(offered, grant avantan.Tokens) avantan.Tokens
}

type starOffer struct {
	id     star.ID
	tokens avantan.Tokens
}

// starEntry is an instance that was applied with a value.
type starEntry struct {
	id    star.ID
	value int
}

func (b *starBooks) clone() *starBooks {
	c := *b
	c.offers, c.log, c.ended, c.broken = slices.Clone(b.offers), slices.Clone(b.log), slices.Clone(b.ended), nil
	return &c
}

func (b *starBooks) key(dst []byte) []byte {
	dst = appendBool(b.estate.key(dst), b.leaves)
	dst = append(dst, byte(len(b.offers)))
	for _, o := range b.offers {
		dst = binary.AppendUvarint(append(dst, o.id.Leader...), o.id.Counter)
		dst = binary.AppendVarint(dst, int64(o.tokens))
	}
	for _, list := range [][]starEntry{b.log, b.ended} {
		dst = append(dst, byte(len(list)))
		for _, e := range list {
			dst = binary.AppendUvarint(append(dst, e.id.Leader...), e.id.Counter)
			dst = binary.AppendUvarint(dst, uint64(e.value))
		}
	}
	return dst
}

func (b *starBooks) fail(invariant, format string, args ...any) {
	b.broken = append(b.broken, Violation{invariant, fmt.Sprintf("%s: ", b.site) + fmt.Sprintf(format, args...)})
}

// find returns where an instance's offer is, or belongs.
func (b *starBooks) find(id star.ID) (int, bool) {
	return slices.BinarySearchFunc(b.offers, id, func(o starOffer, id star.ID) int { return o.id.Compare(id) })
}

// applied returns where an instance is in the log, or belongs.
func (b *starBooks) applied(id star.ID) (int, bool) { return placeOf(b.log, id) }

// concluded reports whether an instance ended without its outcome.
func (b *starBooks) concluded(id star.ID) bool {
	_, found := placeOf(b.ended, id)
	return found
}

func placeOf(list []starEntry, id star.ID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(e starEntry, id star.ID) int { return e.id.Compare(id) })
}

// total is the number of tokens that conservation counts at this site.
func (b *starBooks) total() avantan.Tokens {
	sum := b.left + b.net
	for _, o := range b.offers {
		sum += o.tokens
	}
	return sum
}

// Pledge implements star.Ledger.
func (b *starBooks) Pledge(id star.ID, _ avantan.Press) (avantan.Contribution, bool) {
	i, twice := b.find(id)
	if twice {
		b.fail(Exclusivity, "a second offer for instance %v", id)
	}
	leads := id.Leader == b.site
	if b.left == 0 && !leads || b.leaves {
		return avantan.Contribution{}, false
	}
	c := avantan.Contribution{Site: b.site, Offered: min(b.offer, max(0, b.left))}
	if leads || b.gains {
		c.Wanted = c.Offered + 1
	}
	b.left -= c.Offered
	b.offers = slices.Insert(b.offers, i, starOffer{id, c.Offered})
	return c, true
}

// TakeBack implements star.Ledger.
func (b *starBooks) TakeBack(id star.ID, pledge avantan.Contribution) {
	i, found := b.find(id)
	if !found || b.offers[i].tokens != pledge.Offered {
		b.fail(Exclusivity, "takes back %d that instance %v does not hold", pledge.Offered, id)
		return
	}
	b.left += b.offers[i].tokens
	b.offers = slices.Delete(b.offers, i, i+1)
}

// CanApply implements star.Ledger.
func (b *starBooks) CanApply(v *avantan.Value) error {
	if b.values.get(b.values.id(v)).grants == nil {
		return fmt.Errorf("no grants by %q", v.Policy)
	}
	return nil
}

// Apply implements star.Ledger.
func (b *starBooks) Apply(id star.ID, v *avantan.Value) {
	at, twice := b.applied(id)
	if twice {
		b.fail(ApplyOnce, "instance %v is applied twice", id)
		return
	}
	number := b.values.id(v)
	b.log = slices.Insert(b.log, at, starEntry{id, number})
	b.end(id, number, func(_, grant avantan.Tokens) avantan.Tokens { return grant })
}

// Conclude implements star.Ledger, as a site's books do.
func (b *starBooks) Conclude(id star.ID, v *avantan.Value) {
	at, twice := placeOf(b.ended, id)
	if _, applied := b.applied(id); applied || twice {
		b.fail(ApplyOnce, "instance %v is concluded after its end", id)
		return
	}
	number := b.values.id(v)
	b.ended = slices.Insert(b.ended, at, starEntry{id, number})
	b.end(id, number, b.concludes)
}

// end credits what a site gets for its offer.
func (b *starBooks) end(id star.ID, number int, gets func(offered, grant avantan.Tokens) avantan.Tokens) {
	k := b.values.get(number)
	for i, c := range k.value.Contributions {
		if c.Site != b.site {
			continue
		}
		o, found := b.find(id)
		if !found || b.offers[o].tokens != c.Offered {
			b.fail(Integrity, "instance %v takes %d from it that are not set aside", id, c.Offered)
		} else {
			b.offers = slices.Delete(b.offers, o, o+1)
		}
		b.left += gets(c.Offered, k.grants[i])
	}
}

// gain is the number of tokens that a value brings a site: its grant less its offer.
func (vs *values) gain(id int, site avantan.SiteID) avantan.Tokens {
	k := vs.get(id)
	for i, c := range k.value.Contributions {
		if c.Site == site {
			return k.grants[i] - c.Offered
		}
	}
	return 0
}

// String describes the books in a few words.
func (b *starBooks) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "left %d net %d", b.left, b.net)
	for _, o := range b.offers {
		fmt.Fprintf(&s, " offered[%v] %d", o.id, o.tokens)
	}
	for _, e := range b.log {
		fmt.Fprintf(&s, " applied %v", e.id)
	}
	for _, e := range b.ended {
		fmt.Fprintf(&s, " concluded %v", e.id)
	}
	return s.String()
}
