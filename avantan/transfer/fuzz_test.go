package transfer

import (
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
	f.Add([]byte("an ask, a transfer, an acknowledgement and what else there is to be"))
	// Asked, given, asked again, acknowledged, asked for more than there is.
	f.Add([]byte{
		0, 9, 1, 2, 1, 1, 0, 1, 10, 0, 9, 1, 2, 1, 1, 0, 1, 10, 50, 9, 1, 1, 0, 9, 1, 2, 4, 1, 1,
		0, 9, 1, 2, 1, 1, 1, 2, 255, 0, 9, 1, 2, 1, 2, 0, 1, 255, 0, 9, 1, 2, 1, 2, 1, 3, 90,
	})
	// A round and its answers: an answer twice, an answer out of turn, an answer not
	// credited.
	f.Add([]byte{
		0, 0, 1, 0, 20, 2, 1, 50, 2, 50, 0, 0, 1, 2, 2, 1, 1, 1, 10, 0, 0, 1, 2, 2, 1, 1, 1, 10,
		0, 0, 1, 2, 2, 1, 3, 1, 10, 0, 0, 8, 2, 2, 2, 1, 1, 9, 0, 0, 1, 2, 3, 2, 0, 1, 7, 200, 0, 1, 1,
	})
	// A transfer to b and a round that waits for it; b is written off, and asks again.
	f.Add([]byte{
		0, 9, 1, 2, 1, 1, 0, 1, 10, 0, 9, 1, 0, 20, 2, 1, 50, 2, 50, 0, 9, 1, 250, 0, 9, 1, 2, 1, 1, 1, 2, 10,
		0, 9, 1, 2, 2, 2, 1, 1, 10, 0, 9, 1, 251,
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(map[SiteID]Tokens{"a": 100, "b": 100, "c": 100}, func(SiteID) avantan.Rand { return least{} })
		r, n := reader(data), c.nodes[0]
		for len(r) > 0 {
			before, open, left := n.m.State().Clone(), n.m.Open(), n.b.left
			c.now += Tick(r.next())
			n.b.target, n.b.full = Tokens(int8(r.next())), r.next()%8 == 0
			in := r.input(c)
			*n.seen = n.lost
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
			unchanged := string(after.Fingerprint(nil)) == string(before.Fingerprint(nil)) && n.b.left == left
			if out.Err != nil && (!unchanged || out.Persist || out.Messages != nil || out.Ended != nil || n.m.Open() != open) {
				t.Fatalf("%+v was refused and had an effect: %+v", in.Receive, out)
			}
			gained := Tokens(0)
			for _, cr := range before.Credits {
				if after.credited(cr.Donor) < cr.Seq {
					t.Fatalf("from %+v back to %+v", before, *after)
				}
			}
			for _, d := range before.Debits {
				i, found := after.findDebit(d.Receiver)
				if !found || after.Debits[i].Seq < d.Seq || after.Debits[i].Asked < d.Asked {
					t.Fatalf("from %+v back to %+v", before, *after)
				}
			}
			if m := in.Receive; m != nil && m.Kind == Transfer && after.credited(m.From) > before.credited(m.From) {
				gained = m.Amount
			}
			for _, d := range after.Debits {
				i, found := before.findDebit(d.Receiver)
				if !found && d.Seq > 0 || found && d.Seq > before.Debits[i].Seq {
					gained -= d.Amount
				}
			}
			if n.b.left != left+gained || gained != 0 && !out.Persist {
				t.Fatalf("%d tokens, after %d and %d: %+v", n.b.left, left, gained, out)
			}
			if after.Reserved < before.Reserved || after.Reserved > before.Reserved && !out.Persist {
				t.Fatalf("from %+v to %+v", before, *after)
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
	b := r.next()
	if b < 250 {
		return uint64(b % 8)
	}
	return avantan.MaxNumber + uint64(b%2)
}

func (r *reader) tokens() Tokens {
	switch b := r.next(); b {
	case 255:
		return 1<<63 - 1
	case 254:
		return -1 << 63
	default:
		return Tokens(int8(b))
	}
}

// input is an input, or a wake after a write-off.
func (r *reader) input(c *cluster) Input {
	b := r.next()
	if b >= 250 {
		c.writeOff(c.nodes[0], []SiteID{"b", "c"}[b%2])
		return Input{}
	}
	switch b % 8 {
	case 0:
		p := &Proposal{Need: r.tokens()}
		for range r.next() % 4 {
			p.Donors = append(p.Donors, Donor{r.site(), r.tokens()})
		}
		return Input{Begin: p}
	case 1:
		return Input{}
	}
	in := &Message{Kind: Kind(r.next() % 6), From: r.site(), To: "a", Seq: r.number()}
	if in.Kind != Ack {
		in.Ask = r.number()
	}
	switch in.Kind {
	case Ask, Transfer:
		in.Amount = r.tokens()
	case Refuse:
		in.Seq, in.Left = 0, r.tokens()
	}
	return Input{Receive: in}
}
