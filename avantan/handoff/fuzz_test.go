package handoff

import (
	"errors"
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzStep feeds a machine inputs made of arbitrary bytes, well-formed and not. It must
// not panic, lower a number, or lose or make a token. It must keep a restorable State,
// report every change that must be durable, and do nothing about an input that it
// refuses. It must send nothing that its own Validate refuses.
func FuzzStep(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte{})
	f.Add([]byte("000"))
	f.Add([]byte("a bequest, an acknowledgement, a loss and what else there is to be"))
	// Begun, sent again, acknowledged twice, begun again, the heir lost.
	f.Add([]byte{
		0, 9, 3, 5, 0, 1, 100, 9, 3, 5, 3, 1, 9, 3, 5, 5, 2, 1, 1, 2, 1, 9, 3, 5, 5, 2, 1, 1, 2,
		0, 9, 8, 5, 0, 1, 0, 9, 8, 5, 1, 1,
	})
	// Bequests taken, again, out of turn, with items, that do not fit.
	f.Add([]byte{
		0, 9, 9, 0, 4, 1, 1, 0, 0, 1, 10, 0, 20, 0, 0, 9, 9, 0, 4, 1, 1, 0, 0, 1, 10, 0, 20, 0,
		0, 9, 9, 0, 4, 1, 1, 0, 0, 2, 0, 7, 236, 2, 1, 3, 2, 4, 0, 9, 9, 8, 4, 1, 1, 0, 0, 3, 1, 0, 0, 0,
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}, func(SiteID) avantan.Rand { return least{} })
		r, n := reader(data), c.nodes[0]
		c.copies = true
		for range 500 {
			if len(r) == 0 {
				break
			}
			c.now += Tick(r.next())
			n.b.release(Tokens(int8(r.next())))
			if k := r.next(); k%4 == 0 {
				id := fmt.Sprint("y", k)
				if !n.b.holds(id) {
					n.b.add(lease{id, Tokens(k)})
					n.b.net += Tokens(k)
				}
			}
			n.b.full = r.next()%8 == 0
			before, books := n.m.State().Clone(), *n.b
			in := r.input()
			out := n.m.Step(c.now, in)
			for i := range out.Messages {
				if err := out.Messages[i].Validate(); err != nil {
					t.Fatal(err)
				}
			}
			after := n.m.State()
			if err := after.Validate(); err != nil || c.err != nil {
				t.Fatal(err, c.err)
			}
			same := string(after.Fingerprint(nil)) == string(before.Fingerprint(nil))
			sameBooks := string(n.b.fingerprint(nil)) == string(books.fingerprint(nil))
			if out.Persist == (same && sameBooks) {
				t.Fatalf("from %+v to %+v: %+v", before, *after, out)
			}
			// A bequest that does not fit may acknowledge another one.
			if out.Err != nil && !errors.Is(out.Err, errUnacceptable) && (out.Persist || out.Closed || out.Messages != nil) {
				t.Fatalf("%+v was refused and had an effect: %+v", in, out)
			}
			left, net := moved(&before, after, &in)
			if n.b.left-books.left != left || n.b.net-books.net != net {
				t.Fatalf("%d and %d tokens came, want %d and %d: %+v, from %+v to %+v",
					n.b.left-books.left, n.b.net-books.net, left, net, in, before, *after)
			}
			if in.Lost == "" {
				forward(t, &before, after)
			}
		}
	})
}

// moved returns the tokens left and out that a step brought into the books, or took out
// of them.
func moved(before, after *State, in *Input) (left, net Tokens) {
	if o := after.Open; o != nil && (before.Open == nil || before.Open.Number != o.Number || before.Open.Heir != o.Heir) {
		left -= o.Estate.Left
		net -= min(o.Estate.Net, 0)
	}
	if before.Open != nil && after.Open == nil && in.Lost == "" {
		e := &before.Open.Estate
		left += e.Owed
		net -= max(e.Net, 0) + e.held()
	}
	if m := in.Receive; m != nil && after.taken(m.From).Number > before.taken(m.From).Number {
		left += m.Estate.Left - m.Estate.Owed
		net += m.Estate.Net + m.Estate.held()
	}
	return left, net
}

// forward checks that no number goes back.
func forward(t *testing.T, before, after *State) {
	t.Helper()
	for _, g := range before.Given {
		if after.given(g.Heir) < g.Number {
			t.Fatalf("from %+v back to %+v", before, *after)
		}
	}
	for _, k := range before.Taken {
		if after.taken(k.Leaver).Number < k.Number {
			t.Fatalf("from %+v back to %+v", before, *after)
		}
	}
}

// reader makes inputs of bytes.
type reader []byte

func (r *reader) next() byte {
	if len(*r) == 0 {
		return 0
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return b
}

func (r *reader) site() SiteID {
	return []SiteID{"a", "b", "c", "b", "c", "b", "", "z"}[r.next()%8]
}

func (r *reader) number() uint64 {
	b := r.next()
	if b < 250 {
		return uint64(b % 8)
	}
	return avantan.MaxNumber + uint64(b%2)
}

// tokens keep the sums of a long input within 64 bits.
func (r *reader) tokens() Tokens {
	switch b := r.next(); b {
	case 255:
		return 1 << 48
	case 254:
		return -1 << 48
	case 253:
		return -1 << 63
	default:
		return Tokens(int8(b))
	}
}

func (r *reader) input() Input {
	switch r.next() % 8 {
	case 0:
		return Input{Begin: r.site()}
	case 1:
		return Input{Lost: r.site()}
	case 2, 3:
		return Input{}
	case 4:
		m := &Message{Kind: Bequeath, From: r.site(), To: "a", Taken: r.number(), Number: r.number()}
		if r.next()%2 == 0 {
			m.Estate.Owed = r.tokens()
		} else {
			m.Estate.Left = r.tokens()
		}
		m.Estate.Net = r.tokens()
		for range r.next() % 4 {
			m.Estate.Items = append(m.Estate.Items, Item{Data: []byte(fmt.Sprint("x", r.next())), Tokens: r.tokens()})
		}
		return Input{Receive: m}
	}
	m := &Message{Kind: Kind(r.next() % 4), From: r.site(), To: "a", Taken: r.number()}
	return Input{Receive: m}
}
