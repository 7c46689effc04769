package core

import (
	"encoding/binary"
	"iter"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// changeResults are the decided changes of the catalogue whose results count, oldest
// first. Results are kept by time, so a burst of changes keeps one result each: they are
// packed, and one takes some 140 bytes, see TestMemoryOfAChange.
type changeResults struct {
	packed []packedChange
	// forgotten counts the results that were forgotten: packed[0] is at this place.
	forgotten int
	// byID has the place of the last result of each request id.
	byID map[string]int
}

func newChangeResults() changeResults { return changeResults{byID: make(map[string]int)} }

// len counts the results.
func (rs *changeResults) len() int { return len(rs.packed) }

// at unpacks the i-th oldest.
func (rs *changeResults) at(i int) stored.Change { return rs.packed[i].unpack() }

// find unpacks the last result of a request id.
func (rs *changeResults) find(id string) (stored.Change, bool) {
	place, ok := rs.byID[id]
	if !ok {
		return stored.Change{}, false
	}
	return rs.at(place - rs.forgotten), true
}

// add appends the result of the change that was decided last.
func (rs *changeResults) add(r *stored.Change) {
	p := packChange(r)
	rs.packed = append(rs.packed, p)
	// The id that was packed: the map keeps no string of its own.
	packed := p.unpack()
	delete(rs.byID, packed.Change.RequestID) // an equal key would stay in the map
	rs.byID[packed.Change.RequestID] = rs.forgotten + len(rs.packed) - 1
}

// forgetOldest forgets so many. An id may have been decided anew: its later result stays.
func (rs *changeResults) forgetOldest(n int) {
	for i, p := range rs.packed[:n] {
		r := p.unpack()
		if rs.byID[r.Change.RequestID] == rs.forgotten+i {
			delete(rs.byID, r.Change.RequestID)
		}
	}
	clear(rs.packed[:n])
	rs.packed, rs.forgotten = rs.packed[n:], rs.forgotten+n
}

// from yields the results from the i-th oldest on.
func (rs *changeResults) from(i int) iter.Seq[stored.Change] {
	return func(yield func(stored.Change) bool) {
		for _, p := range rs.packed[i:] {
			if !yield(p.unpack()) {
				return
			}
		}
	}
}

// packedChange is a stored.Change as one string: numbers as varints, each string behind
// its length. It never leaves the process, and has no version.
type packedChange string

// packedKinds are the kinds that take one byte; a kind that is not among them is packed
// as a string behind the number of them.
var packedKinds = [...]input.ChangeKind{
	input.CreateEntity, input.DeleteEntity, input.MoveEntity, input.SetMode, input.AddSite, input.AdmitSite, input.RaiseVersion,
	input.DrainSite, input.KeepSite, input.RetireSite, input.RemoveSite, input.LoseSite, input.RescueSite, input.SettleSite,
}

func packChange(r *stored.Change) packedChange {
	ch := &r.Change
	var room [256]byte
	b := room[:0]
	number := func(n uint64) { b = binary.AppendUvarint(b, n) }
	signed := func(n int64) { b = binary.AppendVarint(b, n) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	flag := func(set bool) {
		n := uint64(0)
		if set {
			n = 1
		}
		number(n)
	}

	number(r.Number)
	number(uint64(r.Instance))
	number(uint64(r.Outcome))
	number(r.Generation)
	kind := 0
	for kind < len(packedKinds) && packedKinds[kind] != ch.Kind {
		kind++
	}
	number(uint64(kind))
	if kind == len(packedKinds) {
		text(string(ch.Kind))
	}
	text(ch.Name)
	signed(int64(ch.Limit))
	text(ch.Parent)
	flag(ch.Subtree)
	text(ch.Mode)
	number(uint64(ch.Version))
	number(uint64(ch.Begin))
	number(ch.Generation)
	text(ch.RequestID)
	b = binary.LittleEndian.AppendUint64(b, ch.Body)
	signed(ch.Asked)
	signed(ch.NotAfter - ch.Asked)
	signed(ch.Keep - ch.Asked)
	number(ch.Incarnation)
	text(string(ch.Heir))
	if !ch.Rate.None() {
		text(string(ch.Rate.Kind))
		number(uint64(ch.Rate.Count))
		text(string(ch.Rate.Unit))
		text(ch.Rate.Zone)
		flag(ch.Rate.Volatile)
		flag(ch.Rate.Keys)
	}
	return packedChange(b)
}

// unpack returns the record. Its strings are parts of the packed one.
func (p packedChange) unpack() stored.Change {
	u := unpacker{string(p)}
	r := stored.Change{
		Number: u.number(), Instance: avantan.Instance(u.number()), Outcome: answer.Code(u.number()), Generation: u.number(),
	}
	ch := &r.Change
	if kind := u.number(); kind < uint64(len(packedKinds)) {
		ch.Kind = packedKinds[kind]
	} else {
		ch.Kind = input.ChangeKind(u.text())
	}
	ch.Name, ch.Limit, ch.Parent, ch.Subtree = u.text(), Tokens(u.signed()), u.text(), u.number() == 1
	ch.Mode, ch.Version, ch.Begin = u.text(), versions.Version(u.number()), versions.Version(u.number())
	ch.Generation, ch.RequestID, ch.Body = u.number(), u.text(), u.fixed()
	ch.Asked = u.signed()
	ch.NotAfter, ch.Keep = ch.Asked+u.signed(), ch.Asked+u.signed()
	ch.Incarnation, ch.Heir = u.number(), SiteID(u.text())
	if u.rest != "" {
		ch.Rate.Kind, ch.Rate.Count, ch.Rate.Unit, ch.Rate.Zone = rates.Kind(u.text()), uint32(u.number()), rates.Unit(u.text()), u.text() //nolint:gosec // packed from 32 bits
		ch.Rate.Volatile, ch.Rate.Keys = u.number() == 1, u.number() == 1
	}
	return r
}

// unpacker reads what pack wrote, from the front.
type unpacker struct{ rest string }

func (u *unpacker) number() uint64 {
	var n uint64
	for i := 0; ; i++ {
		c := u.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			u.rest = u.rest[i+1:]
			return n
		}
	}
}

// signed undoes the zigzag of binary.AppendVarint.
func (u *unpacker) signed() int64 {
	n := u.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) text() string {
	n := u.number()
	s := u.rest[:n]
	u.rest = u.rest[n:]
	return s
}

func (u *unpacker) fixed() uint64 {
	var n uint64
	for i := range 8 {
		n |= uint64(u.rest[i]) << (8 * i)
	}
	u.rest = u.rest[8:]
	return n
}
