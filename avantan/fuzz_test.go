package avantan

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzStep feeds a machine inputs made of arbitrary bytes, well-formed and not. It must
// not panic, lower a promise within an instance or go back to an earlier instance. It
// must keep a restorable State, and send nothing that its own Validate refuses.
func FuzzStep(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte{})
	f.Add([]byte("000"))
	f.Add([]byte{0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 9, 9, 9, 2, 0, 0})
	f.Add([]byte("an election, an accept, a decision and what else there is to be"))
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1, 6, 1, 1, 1, 1, 1, 1, 11, 1, 3, 3, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}, func(SiteID) Rand { return least{} })
		r, n := reader(data), c.nodes[0]
		for len(r) > 0 {
			before := n.m.State().Clone()
			c.now += Tick(r.next())
			out := n.m.Step(c.now, r.input())
			after := n.m.State()
			if after.Applied < before.Applied || after.Applied == before.Applied && after.Promised.Compare(before.Promised) < 0 {
				t.Fatalf("from %+v back to %+v", before, *after)
			}
			if err := after.Validate(); err != nil {
				t.Fatal(err)
			}
			if errors.Is(out.Err, errMessage) && (out.Persist || out.Messages != nil) {
				t.Fatalf("a refused message had an effect: %+v", out)
			}
			for i := range out.Messages {
				if err := out.Messages[i].Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
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
	if b := r.next(); b < 250 {
		return uint64(b % 5)
	} else if b < 253 {
		return MaxNumber
	}
	return ^uint64(0)
}

func (r *reader) ballot() Ballot { return Ballot{r.number(), r.site()} }

func (r *reader) contribution() Contribution {
	return Contribution{
		Site: r.site(), Offered: Tokens(int8(r.next())), Wanted: Tokens(int8(r.next())), Queued: Tokens(int8(r.next())),
	}
}

func (r *reader) value() *Value {
	if r.next()%4 == 0 {
		return nil
	}
	v := &Value{Policy: []string{"even", "even", "whim", ""}[r.next()%4]}
	for range 1 + r.next()%3 {
		v.Contributions = append(v.Contributions, r.contribution())
	}
	return v
}

func (r *reader) input() Input {
	switch r.next() % 8 {
	case 0:
		return Input{Begin: &Proposal{Press: Press(r.next())}}
	case 1:
		return Input{}
	case 2:
		return Input{Refresh: r.site()}
	}
	m := &Message{
		Kind: Kind(r.next() % 13), From: r.site(), To: "a", Instance: Instance(r.number()), Ballot: r.ballot(),
		Promised: r.ballot(), Press: Press(r.next() % 3), AcceptedAt: r.ballot(), Value: r.value(),
		Applied: Instance(r.number()), Snapshot: []byte("300"),
	}
	if r.next()%2 == 0 {
		m.Contribution = new(r.contribution())
	}
	for range r.next() % 3 {
		k := Kept{Peer: r.site(), Instance: Instance(r.number())}
		if v := r.value(); v != nil {
			k.Value = *v
		}
		m.Kept = append(m.Kept, k)
	}
	return Input{Receive: m}
}
