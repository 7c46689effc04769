package core

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// TestRecall compares the remembered requests with a map, while records come and go, some
// of them with remembered keys, and their numbers wrap around. Of some records values lie
// at the edges of what fits into one slot, or beyond.
func TestRecall(t *testing.T) {
	for _, tc := range []struct {
		name string
		keys uint64
		most int
	}{
		{"few keys", 300, 2000},
		{"many", math.MaxUint64, 20_000},
		{"hardly any", 2, 5000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const start = math.MaxUint32 - 10_000
			m := recall{index: newKeyIndex(), slots: line[slot]{first: start, begin: start, end: start}}
			rnd := rand.New(rand.NewPCG(1, tc.keys))
			var order []remembered
			last := make(map[attempt.Key]remembered)
			check := func(key attempt.Key) {
				t.Helper()
				want, known := last[key]
				number, found := m.find(&key)
				if found != known || known && m.get(number) != want {
					t.Fatalf("%x: got %v, want %+v, %v", key, found, want, known)
				}
			}
			forget := func(n int) {
				t.Helper()
				var want []remembered
				for _, r := range order[:n] {
					if last[r.key] == r {
						want = append(want, r)
						delete(last, r.key)
					}
				}
				if got := m.forget(n, new([forgetAtOnce]remembered)); !slices.Equal(got, want) {
					t.Fatalf("forgot %+v, want %+v", got, want)
				}
				for _, r := range order[:n] {
					check(r.key)
				}
				order = order[n:]
			}
			for n := range uint64(100_000) {
				r := edgyRecord(rnd)
				binary.BigEndian.PutUint64(r.key[8:], rnd.Uint64N(tc.keys))
				r.body = n // tells it from all others
				check(r.key)
				if rnd.IntN(4) == 0 {
					if _, known := last[r.key]; m.addNew(&r) == known {
						t.Fatalf("%x: added beside another: %v", r.key, known)
					} else if known {
						continue
					}
				} else if before, replaced := m.add(&r); before != last[r.key] || replaced != (before != remembered{}) {
					t.Fatalf("%x: replaced %+v, %v, want %+v", r.key, before, replaced, last[r.key])
				}
				order, last[r.key] = append(order, r), r
				check(r.key)
				for len(order) > tc.most-rnd.IntN(tc.most/2) {
					forget(1 + rnd.IntN(min(len(order), forgetAtOnce)))
				}
				if len(order) > 0 {
					check(order[rnd.IntN(len(order))].key)
				}
				if m.index.len != len(last) {
					t.Fatalf("%d are counted, there are %d", m.index.len, len(last))
				}
			}
			if chunks := len(m.slots.chunks); chunks > 2+2*len(order)/lineChunk {
				t.Errorf("%d chunks for %d records", chunks, len(order))
			}
			for len(order) > 0 {
				forget(min(len(order), forgetAtOnce))
			}
			if m.slots.len() != 0 {
				t.Errorf("%d slots are left", m.slots.len())
			}
			for i := range m.index.shards {
				if s := &m.index.shards[i]; s.used != 0 || len(s.entries) > 2*leastEntries {
					t.Fatalf("%d entries are used for nothing, of %d", s.used, len(s.entries))
				}
			}
		})
	}
}

// edgyRecord draws a record without a key. About every other is wide.
func edgyRecord(rnd *rand.Rand) remembered {
	pick := func(of ...int64) int64 {
		if rnd.IntN(8) > 0 {
			return rnd.Int64N(1000)
		}
		return of[rnd.IntN(len(of))]
	}
	return remembered{
		generation: uint64(pick(0, 1, math.MaxUint32, math.MaxUint32+1, math.MaxInt64, -1)),
		tokens:     Tokens(pick(0, math.MaxUint32, math.MaxUint32+1, math.MaxInt64, -1, math.MinInt64)),
		left:       Tokens(pick(0, -1, 1<<55-1, 1<<55, -1<<55, -1<<55-1, 1<<32, -1<<32, math.MaxInt64, math.MinInt64)),
		attempt:    attempt.Number(pick(0, math.MaxUint16, math.MaxUint16+1, math.MaxUint32)),
		tenant:     portion.Slot(pick(0, 1<<15-1, 1<<15, math.MaxUint32)),
		kind:       stored.RequestKind(pick(0, 15, 16, math.MaxUint8)),
		state:      stored.RequestState(pick(0, 15, 16, math.MaxUint8)),
	}
}

// TestWidths: a record whose values just fit takes one slot. A value that is larger by one
// makes the record take two. Either way all values come back.
func TestWidths(t *testing.T) {
	fits := remembered{
		key: attempt.Key{1, 15: 2}, body: math.MaxUint64, generation: math.MaxUint32, tokens: math.MaxUint32, left: 1<<55 - 1,
		attempt: math.MaxUint16, tenant: 1<<15 - 1, kind: 15, state: 15,
	}
	least := fits
	least.left = -1 << 55
	for name, tc := range map[string]struct {
		change func(r *remembered)
		slots  int
	}{
		"all at their most": {func(*remembered) {}, 1},
		"left at its least": {func(r *remembered) { *r = least }, 1},
		"generation":        {func(r *remembered) { r.generation++ }, 2},
		"tokens":            {func(r *remembered) { r.tokens++ }, 2},
		"tokens below 0":    {func(r *remembered) { r.tokens = -1 }, 2},
		"left":              {func(r *remembered) { r.left++ }, 2},
		"left below":        {func(r *remembered) { *r = least; r.left-- }, 2},
		"attempt":           {func(r *remembered) { r.attempt++ }, 2},
		"tenant":            {func(r *remembered) { r.tenant++ }, 2},
		"kind":              {func(r *remembered) { r.kind++ }, 2},
		"state":             {func(r *remembered) { r.state++ }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := recall{index: newKeyIndex()}
			r := fits
			tc.change(&r)
			m.add(&r)
			if got := m.get(0); got != r || m.slots.len() != tc.slots {
				t.Errorf("%d slots, want %d; got %+v, want %+v", m.slots.len(), tc.slots, got, r)
			}
			if gone := m.forget(1, new([forgetAtOnce]remembered)); len(gone) != 1 || gone[0] != r || m.slots.len() != 0 {
				t.Errorf("forgot %+v, want %+v; %d slots are left", gone, r, m.slots.len())
			}
		})
	}
}

// TestBytesOfARequest bounds the bytes that the table allocates for a remembered request,
// its index and the note of its block included, whenever the table has grown a little.
// Measured: 58.8 at most, 57.1 on average.
func TestBytesOfARequest(t *testing.T) {
	const from, to, perBlock, most = 200_000, 1_200_000, 20, 60
	table := newRequestTable(1<<30, session.MaxOpen)
	worst, sum, times := 0., 0., 0
	block := stored.Block{Records: make([]stored.Request, perBlock)}
	for n := 0; n < to; {
		for i := range block.Records {
			r := &block.Records[i]
			n++
			r.Key = attempt.KeyOf(strconv.Itoa(n))
			table.add(r, portion.Nobody)
		}
		table.seal(&block, input.Now{Tick: 1, Wall: 1})
		if n >= from && n%2000 == 0 {
			each := float64(table.allocated()) / float64(n)
			worst, sum, times = max(worst, each), sum+each, times+1
		}
	}
	t.Logf("%.1f bytes a request at most, %.1f on average", worst, sum/float64(times))
	if worst > most {
		t.Errorf("%.1f bytes a request, at most %d", worst, most)
	}
	if n := table.len(); n != to {
		t.Errorf("%d requests are remembered, want %d", n, to)
	}
}

// allocated is the number of bytes of the table's own memory.
func (t *requestTable) allocated() int {
	n := allocatedOf(&t.slots) + allocatedOf(&t.blocks)
	for i := range t.index.shards {
		n += cap(t.index.shards[i].entries) * 8
	}
	return n + int(unsafe.Sizeof(*t.index))
}

func allocatedOf[T any](l *line[T]) int {
	n := 0
	for _, chunk := range append(l.chunks, l.spare) {
		if chunk != nil {
			n += int(unsafe.Sizeof(*chunk))
		}
	}
	return n + 8*cap(l.chunks)
}

// TestKeyIndexCrowded: many tags with homes close to each other are found, and go. They
// lie at the beginning of the shard, in its midst, or at its end.
func TestKeyIndexCrowded(t *testing.T) {
	for _, around := range []uint32{1 << tagBits, 3 << 30, math.MaxUint32 - 120} {
		t.Run(fmt.Sprintf("%x", around), func(t *testing.T) {
			var s indexShard
			rnd := rand.New(rand.NewPCG(1, 2))
			there := make(map[uint32]uint32)
			number := uint32(0)
			for range 50_000 {
				tag := around + uint32(rnd.IntN(3)) + uint32(rnd.IntN(40))*3
				want, known := there[tag]
				at, found := s.find(tag, func(n uint32) bool { return n == want })
				if found != known {
					t.Fatalf("tag %x: found %v, want %v", tag, found, known)
				}
				switch {
				case known && rnd.IntN(2) == 0:
					s.remove(at)
					delete(there, tag)
				case known:
					s.set(at, tag, number)
					there[tag] = number
				default:
					s.insert(at, tag, number)
					there[tag] = number
				}
				number++
				if int(s.used) != len(there) {
					t.Fatalf("%d entries are used for %d", s.used, len(there))
				}
			}
		})
	}
}

// TestKeyIndexOfOneTag: keys with the same tag are told apart by their numbers, and each
// can go.
func TestKeyIndexOfOneTag(t *testing.T) {
	const tag, all = math.MaxUint32, 100
	var s indexShard
	for n := range uint32(all) {
		at, _ := s.find(tag, func(uint32) bool { return false })
		s.insert(at, tag, n)
	}
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(all) {
		is := func(have uint32) bool { return have == uint32(n) }
		at, found := s.find(tag, is)
		if !found {
			t.Fatalf("%d is not found", n)
		}
		s.remove(at)
		if _, found := s.find(tag, is); found {
			t.Fatalf("%d is found after it has gone", n)
		}
	}
}

// TestExpiryIsBounded: a transaction forgets no more records than its bound, also of a
// large block. The rest of the block stays remembered.
func TestExpiryIsBounded(t *testing.T) {
	table := newRequestTable(1<<30, session.MaxOpen)
	key := func(n int) (k attempt.Key) {
		binary.BigEndian.PutUint64(k[:], uint64(n))
		return k
	}
	const large = 2500
	for i := range large {
		table.add(&stored.Request{Key: key(i), Tokens: Tokens(i)}, portion.Nobody)
	}
	table.seal(&stored.Block{Records: make([]stored.Request, large)}, input.Now{Tick: 1, Wall: 1000})
	table.add(&stored.Request{Key: key(large)}, portion.Nobody)
	table.seal(&stored.Block{Records: make([]stored.Request, 1)}, input.Now{Tick: 50, Wall: 1050})
	for now, want := range []int{large + 1, large + 1 - 1000, large + 1 - 2000, 1, 1} {
		if now > 0 {
			table.expire(40, 10, 1000)
			if table.lost != 1000 {
				t.Errorf("what is lost was answered by %d, want 1000", table.lost)
			}
		}
		if n := table.len(); n != want {
			t.Fatalf("%d are remembered, want %d", n, want)
		}
		for i := range large + 1 {
			if r, found := table.find(key(i)); found != (i > large-want) {
				t.Fatalf("request %d of %d left: %+v, %v", i, want, r, found)
			}
		}
	}
}
