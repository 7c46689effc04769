package explore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// books are a site's books of an entity (protocol.md, section 1), with a log of the
// instances that moved them. Under PressSpare they offer all tokens left except a single
// token, else all. So an offer chosen anew after an acquire or a release is another
// offer.
type books struct {
	estate
	site  avantan.SiteID
	limit avantan.Tokens
	want  avantan.Tokens
	// offers are the slices set aside, in the order of their instances.
	offers []offer
	// log are the instances applied, in order.
	log []entry
	// view is the present view.
	view avantan.View
	// broken collects the violations that the books see.
	broken []Violation

	values *values
}

type offer struct {
	instance avantan.Instance
	tokens   avantan.Tokens
}

// entry is an instance that was applied with a value, or skipped (value 0)
// when a snapshot was installed.
type entry struct {
	instance avantan.Instance
	value    int
}

// values numbers the values of a search from 1, and knows their grants.
type values struct {
	ids  map[string]int
	list []*known
}

type known struct {
	value  *avantan.Value
	grants []avantan.Tokens
	delta  avantan.Tokens
	// view is the view after it; nil if it leaves the view as it is.
	view avantan.View
}

func (vs *values) id(v *avantan.Value) int {
	key := string(v.Fingerprint(nil))
	if id, ok := vs.ids[key]; ok {
		return id
	}
	k := &known{value: v, delta: delta(v), view: viewAfter(v)}
	policy, err := redistribute.ByName(v.Policy)
	if err == nil {
		k.grants, err = policy.Grants(v.Contributions, k.delta)
	}
	if err != nil {
		k.grants = nil
	}
	vs.list = append(vs.list, k)
	vs.ids[key] = len(vs.list)
	return len(vs.list)
}

func (vs *values) get(id int) *known { return vs.list[id-1] }

// delta is the change of the limit that a value carries.
func delta(v *avantan.Value) avantan.Tokens {
	n, err := strconv.ParseInt(string(v.Change), 10, 64)
	if err != nil {
		return 0
	}
	return avantan.Tokens(n)
}

// viewPrefix begins a change of the view: the sites follow, a letter each.
const viewPrefix = "view "

// viewChange is a change of the view to sites.
func viewChange(sites []avantan.SiteID) []byte {
	change := []byte(viewPrefix)
	for _, s := range sites {
		change = append(change, s...)
	}
	return change
}

// viewAfter is the view after a value; nil if it leaves the view as it is.
func viewAfter(v *avantan.Value) avantan.View {
	sites, changes := strings.CutPrefix(string(v.Change), viewPrefix)
	if !changes {
		return nil
	}
	var view avantan.View
	for _, s := range sites {
		view = append(view, avantan.SiteID(s))
	}
	return view
}

// View implements avantan.Ledger.
func (b *books) View() avantan.View { return b.view }

func (b *books) clone() *books {
	c := *b
	c.offers, c.log, c.broken = slices.Clone(b.offers), slices.Clone(b.log), nil
	return &c
}

func (b *books) key(dst []byte) []byte {
	dst = binary.AppendVarint(b.estate.key(dst), int64(b.limit))
	dst = binary.AppendUvarint(dst, uint64(len(b.view)))
	dst = binary.AppendUvarint(dst, uint64(len(b.offers)))
	for _, o := range b.offers {
		dst = binary.AppendVarint(binary.AppendUvarint(dst, uint64(o.instance)), int64(o.tokens))
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.log)))
	for _, e := range b.log {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(e.instance)), uint64(e.value))
	}
	return dst
}

func (b *books) fail(invariant, format string, args ...any) {
	b.broken = append(b.broken, Violation{invariant, fmt.Sprintf("%s: ", b.site) + fmt.Sprintf(format, args...)})
}

// find returns the position of an instance's offer, or -1.
func (b *books) find(t avantan.Instance) int {
	return slices.IndexFunc(b.offers, func(o offer) bool { return o.instance == t })
}

// total is the number of tokens that conservation counts at this site.
func (b *books) total() avantan.Tokens {
	sum := b.left + b.net
	for _, o := range b.offers {
		sum += o.tokens
	}
	return sum
}

// Pledge implements avantan.Ledger.
func (b *books) Pledge(t avantan.Instance, press avantan.Press) (avantan.Contribution, bool) {
	if b.find(t) >= 0 {
		b.fail(Exclusivity, "a second offer for instance %d", t)
	}
	o := max(0, b.left)
	if press == avantan.PressSpare && o > 0 {
		o--
	}
	b.left -= o
	b.offers = append(b.offers, offer{t, o})
	return avantan.Contribution{Site: b.site, Offered: o, Wanted: max(0, o+b.want), Kept: max(0, b.left)}, true
}

// TakeBack implements avantan.Ledger.
func (b *books) TakeBack(t avantan.Instance, pledge avantan.Contribution) {
	i := b.find(t)
	if i < 0 || b.offers[i].tokens != pledge.Offered {
		b.fail(Exclusivity, "takes back %d that instance %d does not hold", pledge.Offered, t)
		return
	}
	b.left += b.offers[i].tokens
	b.offers = slices.Delete(b.offers, i, i+1)
}

// Forfeit implements avantan.Ledger. No bound loses a majority for good.
func (b *books) Forfeit(t avantan.Instance, _ avantan.Contribution) {
	b.fail(Exclusivity, "gives up the offer to instance %d, and nobody is lost", t)
}

// CanApply implements avantan.Ledger.
func (b *books) CanApply(v *avantan.Value) error {
	if b.values.get(b.values.id(v)).grants == nil && len(v.Contributions) > 0 {
		return fmt.Errorf("no grants by %q", v.Policy)
	}
	return nil
}

// Apply implements avantan.Ledger.
func (b *books) Apply(t avantan.Instance, v *avantan.Value) {
	if n := len(b.log); n > 0 && b.log[n-1].instance >= t {
		b.fail(ApplyOnce, "instance %d is applied after instance %d", t, b.log[n-1].instance)
	}
	id := b.values.id(v)
	b.log = append(b.log, entry{t, id})
	k := b.values.get(id)
	b.limit += k.delta
	if k.view != nil {
		b.view = k.view
	}
	for i, c := range v.Contributions {
		if c.Site != b.site {
			continue
		}
		o := b.find(t)
		if o < 0 || b.offers[o].tokens != c.Offered {
			b.fail(Integrity, "instance %d takes %d from it that are not set aside", t, c.Offered)
		} else {
			b.offers = slices.Delete(b.offers, o, o+1)
		}
		b.left += k.grants[i]
	}
}

// Snapshot implements avantan.Ledger.
func (b *books) Snapshot(avantan.Instance) []byte {
	return append(binary.AppendVarint(nil, int64(b.limit)), fmt.Sprint(b.view)...)
}

// Install implements avantan.Ledger.
func (b *books) Install(applied avantan.Instance, snapshot []byte) error {
	limit, n := binary.Varint(snapshot)
	b.limit, b.view = avantan.Tokens(limit), nil
	for s := range strings.FieldsSeq(strings.Trim(string(snapshot[n:]), "[]")) {
		b.view = append(b.view, avantan.SiteID(s))
	}
	b.log = append(b.log, entry{instance: applied})
	return nil
}

// String describes the books in a few words.
func (b *books) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "left %d net %d", b.left, b.net)
	for _, o := range b.offers {
		fmt.Fprintf(&s, " offered[%d] %d", o.instance, o.tokens)
	}
	return s.String()
}
