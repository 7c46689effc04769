package core

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// TestRecall compares the remembered requests with a map, while records come and go, some
// of them with remembered keys, and their numbers wrap around.
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
			m := recall{index: newKeyIndex(0), first: start, begin: start, end: start}
			rnd := rand.New(rand.NewPCG(1, tc.keys))
			type made struct {
				key    attempt.Key
				tokens Tokens
			}
			var order []made
			last := make(map[attempt.Key]Tokens)
			check := func(key attempt.Key) {
				t.Helper()
				want, known := last[key]
				if got := m.find(&key); (got != nil) != known || known && (got.tokens != want || got.key != key) {
					t.Fatalf("%x: got %+v, want %d, %v", key, got, want, known)
				}
			}
			for n := range Tokens(100_000) {
				var r remembered
				binary.BigEndian.PutUint64(r.key[8:], rnd.Uint64N(tc.keys))
				r.tokens = n
				check(r.key)
				m.add(&r)
				order, last[r.key] = append(order, made{r.key, n}), n
				check(r.key)
				for len(order) > tc.most-rnd.IntN(tc.most/2) {
					m.forget()
					if gone := order[0]; last[gone.key] == gone.tokens {
						delete(last, gone.key)
					}
					check(order[0].key)
					order = order[1:]
				}
				check(order[rnd.IntN(len(order))].key)
				if m.index.len != len(last) {
					t.Fatalf("%d are counted, there are %d", m.index.len, len(last))
				}
			}
			if chunks := len(m.chunks); chunks > 2+len(order)/chunkRecords {
				t.Errorf("%d chunks for %d records", chunks, len(order))
			}
			for range order {
				m.forget()
			}
			for i := range m.index.shards {
				if s := &m.index.shards[i]; s.used != 0 {
					t.Fatalf("%d slots are used for nothing", s.used)
				}
			}
		})
	}
}

// TestKeyIndexCrowded: many tags that hash to the same slot are found, and go.
func TestKeyIndexCrowded(t *testing.T) {
	var s indexShard
	rnd := rand.New(rand.NewPCG(1, 2))
	there := make(map[uint32]uint32)
	number := uint32(0)
	for range 50_000 {
		tag := uint32(1<<31) | uint32(rnd.IntN(3)) | uint32(rnd.IntN(40))<<20
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
			s.insert(tag, number)
			there[tag] = number
		}
		number++
		if s.used != len(there) {
			t.Fatalf("%d slots are used for %d", s.used, len(there))
		}
	}
}

// TestExpiryIsBounded: a transaction forgets no more records than its bound, also of a
// large block. The rest of the block stays remembered.
func TestExpiryIsBounded(t *testing.T) {
	table := newRequestTable(nil, 0, nil)
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
