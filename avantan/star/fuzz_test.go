package star

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzStep feeds a machine inputs made of arbitrary bytes, well-formed and not. It must
// not panic, lower a floor or a reservation, or lose or make a token. It must keep a
// restorable State in agreement with its books, and send nothing that its own Validate
// refuses.
func FuzzStep(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte{})
	f.Add([]byte("000"))
	f.Add([]byte{0, 0, 1, 0, 3, 2, 1, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("an election, an accept, a commit and what else there is to be"))
	f.Add([]byte{1, 3, 1, 1, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1, 6, 1, 1, 1, 1, 1, 1, 8, 1, 3, 3, 3})
	// a offers to b and accepts a value with c, c is written off, b says the same, then b is.
	f.Add([]byte{
		1, 2, 1, 1, 1, 1, 0, 1, 2, 5, 1, 1, 1, 0, 0, 9, 0, 9, 1, 251, 1, 2, 11, 1, 1, 1, 0, 2,
		1, 2, 12, 1, 1, 1, 0, 1, 2, 13, 1, 1, 1, 0, 1, 250,
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}, 3, func(SiteID) avantan.Rand { return least{} })
		r, n := reader(data), c.nodes[0]
		for len(r) > 0 {
			before := n.m.State().Clone()
			c.now += Tick(r.next())
			in := r.input(c, n.m)
			*n.seen = n.lost
			if m := in.Receive; m != nil && m.Kind == Accept && m.Value != nil {
				// The books check applied values against proposed values.
				c.values[m.ID] = m.Value.Clone()
			}
			out := n.m.Step(c.now, in)
			for i := range out.Messages {
				if err := out.Messages[i].Validate(); err != nil {
					t.Fatal(err)
				}
				if m := &out.Messages[i]; m.Kind == Accept {
					c.values[m.ID] = m.Value.Clone()
				}
			}
			after := n.m.State()
			if err := (view{after, n.b}).valid(n.cfg.MaxSlices); err != nil {
				t.Fatal(err)
			}
			for _, floor := range before.Floors {
				if after.floor(floor.Leader) < floor.Counter {
					t.Fatalf("from %+v back to %+v", before, *after)
				}
			}
			if after.Reserved < before.Reserved || len(n.m.cares) != len(after.Slices) {
				t.Fatalf("from %+v to %+v, %d cares", before, *after, len(n.m.cares))
			}
			if errors.Is(out.Err, errMessage) && (out.Applied != nil || out.Failed == FailedAborted) {
				t.Fatalf("a refused message had an effect: %+v", out)
			}
			sum := n.b.left
			for _, offer := range n.b.offers {
				sum += offer
			}
			for _, v := range n.b.got {
				contribution, _ := v.Of("a")
				sum += contribution.Offered - grants(v)["a"]
			}
			for _, v := range n.b.ended {
				sum += retired("a", v, false)
			}
			if sum != 100 {
				t.Fatalf("%d tokens of 100", sum)
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

func (r *reader) id() ID {
	id := ID{Leader: r.site()}
	if b := r.next(); b < 250 {
		id.Counter = uint64(b % 4)
	} else {
		id.Counter = avantan.MaxNumber + uint64(b%2)
	}
	return id
}

func (r *reader) contribution() avantan.Contribution {
	return avantan.Contribution{Site: r.site(), Offered: Tokens(int8(r.next())), Wanted: Tokens(r.next() % 40)}
}

// value is often a value that the machine could accept.
func (r *reader) value(m *Machine, id ID) *Value {
	v := &Value{Policy: []string{"even", "even", "even", "whim"}[r.next()%4]}
	list := []avantan.Contribution{{Site: "b", Offered: Tokens(r.next())}}
	if r.next()%2 == 0 {
		list = append(list, avantan.Contribution{Site: "c", Offered: Tokens(r.next())})
	}
	if i, found := m.state.find(id); found {
		list = append(list, m.state.Slices[i].Pledge)
		if old := m.state.Slices[i].Value; old != nil && r.next()%4 > 0 {
			return old
		}
	} else {
		list = append(list, r.contribution())
	}
	v.Contributions = sorted(list)
	return v
}

// input is an input, or a wake after a write-off.
func (r *reader) input(c *cluster, m *Machine) Input {
	b := r.next()
	if b >= 250 {
		c.writeOff(c.nodes[0], []SiteID{"b", "c"}[b%2])
		return Input{}
	}
	switch b % 8 {
	case 0:
		return Input{Begin: &Proposal{Press: avantan.Press(r.next()), Short: Tokens(int8(r.next()))}}
	case 1:
		return Input{}
	}
	in := &Message{Kind: Kind(r.next() % 15), From: r.site(), To: "a", ID: r.id(), Press: avantan.Press(r.next() % 3)}
	switch in.Kind {
	case Election, Discard, Settled:
		in.ID.Leader = in.From
	case ElectionOk:
		in.Contribution = new(r.contribution())
	case Accept:
		in.Value = r.value(m, in.ID)
	case Undecided:
		in.Lost = []SiteID{r.site()}
	}
	return Input{Receive: in}
}
