package explore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
)

// Transfer are direct transfers between sites, as package transfer has them. Leaders may
// ask the others: the first so many times as it has ballots, any other once.
type Transfer struct {
	bounds Bounds
	cfg    [Sites]*transfer.Config
	// known are the losses that each site knows in the present step.
	known [Sites]losses
	// damage, in tests, changes the durable state at a restart.
	damage func(*transfer.State)
}

// NewTransfer returns the variant of direct transfers within bounds, which must be valid.
func NewTransfer(b Bounds) *Transfer {
	v := &Transfer{bounds: b}
	for i, self := range siteNames {
		v.cfg[i] = &transfer.Config{
			Self: self, Members: siteNames[:], Window: window, Backoff: backoff, MaxBackoff: 16 * backoff, Rand: &random{uint64(i)},
			Lost: func(site avantan.SiteID) bool { return v.known[i].has(slices.Index(siteNames[:], site)) },
		}
		if err := v.cfg[i].Validate(); err != nil {
			panic(err) // a constant
		}
	}
	return v
}

// Name implements Variant.
func (v *Transfer) Name() string { return "transfer" }

// Sites implements Variant.
func (v *Transfer) Sites() (names [Sites]string) {
	for i, n := range siteNames {
		names[i] = string(n)
	}
	return names
}

// New implements Variant.
func (v *Transfer) New(site int) Node {
	b := &transferBooks{left: avantan.Tokens(v.bounds.Tokens)}
	return &transferNode{variant: v, site: site, live: b, disk: new(*b), machine: transfer.New(v.cfg[site], b, transfer.State{})}
}

// RequestsLast implements Variant: the tokens left show in transfers.
func (v *Transfer) RequestsLast() bool { return false }

// transferBooks are a site's books of an entity for direct transfers. A site keeps a token
// for its own clients if it can.
type transferBooks struct{ left, net avantan.Tokens }

// Left implements transfer.Ledger.
func (b *transferBooks) Left() (left, target avantan.Tokens) { return b.left, 1 }

// Debit implements transfer.Ledger.
func (b *transferBooks) Debit(_ avantan.SiteID, amount avantan.Tokens) { b.left -= amount }

// Credit implements transfer.Ledger.
func (b *transferBooks) Credit(_ avantan.SiteID, amount avantan.Tokens) error {
	b.left += amount
	return nil
}

// sentTokens are the tokens of a transfer that was ever durable.
type sentTokens struct {
	to     int
	seq    uint64
	amount avantan.Tokens
}

// transferNode is a site.
type transferNode struct {
	variant *Transfer
	site    int
	machine *transfer.Machine
	live    *transferBooks
	// state and disk are durable: the Machine's state and the books.
	state transfer.State
	disk  *transferBooks
	// rounds counts the rounds begun here.
	rounds int
	// sent are all transfers that were ever durable here, in their order.
	sent []sentTokens
	// lost are the losses that the site knows, durably.
	lost losses
}

// Clone implements Node.
func (n *transferNode) Clone() Node {
	c := *n
	c.live, c.disk = new(*n.live), new(*n.disk)
	c.machine, c.state = n.machine.Clone(c.live), n.state.Clone()
	c.sent = slices.Clone(n.sent)
	return &c
}

// Key implements Node.
func (n *transferNode) Key(dst []byte) []byte {
	dst = n.state.Fingerprint(n.machine.Fingerprint(dst))
	for _, t := range []avantan.Tokens{n.live.left, n.live.net, n.disk.left, n.disk.net} {
		dst = binary.AppendVarint(dst, int64(t))
	}
	dst = append(dst, byte(n.rounds), byte(n.lost))
	for _, s := range n.sent {
		dst = binary.AppendVarint(binary.AppendUvarint(append(dst, byte(s.to)), s.seq), int64(s.amount))
	}
	return dst
}

// Rank implements Node.
func (n *transferNode) Rank() int {
	r := 3*n.rounds + 3*len(n.sent)
	for _, c := range n.machine.State().Credits {
		r += 3 * int(c.Seq)
	}
	for _, d := range n.machine.State().Debits {
		r += int(d.Asked % 32)
		if d.Amount > 0 {
			r--
		}
	}
	return r
}

// The names of further acts.
const (
	actAsk    = "asks the others for tokens"
	actRound  = "waits no longer for answers"
	actRepeat = "sends its transfers again"
)

// Acts implements Node.
func (n *transferNode) Acts() []Act {
	var acts []Act
	b := &n.variant.bounds
	if rounds := max(1, b.Ballots*(1-n.site)); n.site < b.Leaders && n.rounds < rounds && !n.machine.Open() {
		acts = append(acts, Act{actAsk, Free})
	}
	if n.machine.Open() {
		acts = append(acts, Act{actRound, Free})
	}
	if n.machine.State().InFlight() > 0 {
		acts = append(acts, Act{actRepeat, Free})
	}
	if (b.Anywhere || n.site == 0) && n.live.left >= 1 {
		acts = append(acts, Act{actAcquire, Acquire})
	}
	if b.Anywhere || n.site == Sites-1 {
		acts = append(acts, Act{actRelease, Release})
	}
	return append(append(acts, lossActs(b, n.site, n.lost)...), Act{actCrash, Crash})
}

// Do implements Node.
func (n *transferNode) Do(i int) Step {
	switch act := n.Acts()[i].Name; act {
	case actAsk:
		n.rounds++
		p := transfer.Proposal{Need: 2 * avantan.Tokens(n.variant.bounds.Tokens)}
		for i, site := range siteNames {
			if i != n.site {
				p.Donors = append(p.Donors, transfer.Donor{Site: site, Left: avantan.Tokens(n.variant.bounds.Tokens)})
			}
		}
		return n.inputs(transfer.Input{Begin: &p}, 0)
	case actRound:
		return n.inputs(transfer.Input{}, transfer.TimerRound)
	case actRepeat:
		return n.inputs(transfer.Input{}, transfer.TimerRepeat)
	case actAcquire, actRelease:
		d := avantan.Tokens(1)
		if act == actRelease {
			d = -1
		}
		for _, b := range []*transferBooks{n.live, n.disk} {
			b.left, b.net = b.left-d, b.net+d
		}
		return Step{}
	case actCrash:
		if n.variant.damage != nil {
			n.variant.damage(&n.state)
		}
		n.live = new(*n.disk)
		n.machine = transfer.New(n.variant.cfg[n.site], n.live, n.state.Clone())
		return n.inputs(transfer.Input{}, 0)
	default:
		lost, _ := lossNamed(act)
		return n.loses(lost, lossNews(n.site, lost))
	}
}

// loses has the site know that another is lost, and let go of what waits for it.
func (n *transferNode) loses(site int, news []Packet) Step {
	n.lost |= 1 << site
	step := n.inputs(transfer.Input{}, 0)
	step.Send = append(step.Send, news...)
	return step
}

// Deliver implements Node.
func (n *transferNode) Deliver(p *Packet) Step {
	switch m := p.Body.(type) {
	case *transfer.Message:
		return n.inputs(transfer.Input{Receive: m}, 0)
	case *writtenOff:
		return n.loses(m.site, nil)
	default:
		panic(fmt.Sprintf("explore: a message of type %T", m))
	}
}

// inputs runs the Machine; a timer fires, or none if 0.
func (n *transferNode) inputs(in transfer.Input, fires transfer.Timer) Step {
	var step Step
	retime := func(due transfer.Timer) {
		n.machine.Retime(func(t transfer.Timer, _ avantan.SiteID, _ avantan.Tick) avantan.Tick {
			if t == due {
				return 0
			}
			return far
		})
	}
	retime(fires)
	n.run(1, in, &step)
	if !n.variant.bounds.Plain && n.machine.Open() {
		// A round only keeps the site from another round, which it need not begin: it may as
		// well be over at once. Tokens are credited all the same.
		retime(transfer.TimerRound)
		n.run(1, transfer.Input{}, &step)
	}
	retime(0)
	return step
}

// run takes a Step of the Machine at a time, and does the work of its caller.
func (n *transferNode) run(now avantan.Tick, in transfer.Input, step *Step) {
	n.variant.known[n.site] = n.lost
	out := n.machine.Step(now, in)
	if out.Err != nil {
		n.broke(step, SelfCheck, "%v", out.Err)
	}
	if out.Persist {
		old := n.state
		n.state, n.disk = n.machine.State().Clone(), new(*n.live)
		n.remember(&old, step)
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		to := slices.Index(siteNames[:], m.To)
		if why := n.unfounded(m); why != "" {
			n.broke(step, DurableFirst, "sends %s: %s", transferText(m), why)
		}
		step.Send = append(step.Send, Packet{From: n.site, To: to, Key: string(m.Fingerprint(nil)), Body: m, Text: transferText(m)})
	}
}

func (n *transferNode) broke(step *Step, invariant, format string, args ...any) {
	step.Broken = append(step.Broken, Violation{invariant, fmt.Sprintf("%s: ", siteNames[n.site]) + fmt.Sprintf(format, args...)})
}

// Urgent implements Node. All messages come at any time.
func (n *transferNode) Urgent(*Packet, Node) bool { return false }

// Past implements Node.
func (n *transferNode) Past() Past { return Past{} }

// Stale implements Node.
func (n *transferNode) Stale(*Packet) bool { return false }

// Dead implements Node.
func (n *transferNode) Dead(*Packet) bool { return false }

// Forget implements Node.
func (n *transferNode) Forget(uint64) Node { return n }

// transferText describes a message.
func transferText(m *transfer.Message) string {
	text := fmt.Sprint(m.Kind)
	if m.Ask > 0 {
		text += fmt.Sprintf(" ask %d", m.Ask)
	}
	if m.Seq > 0 {
		text += fmt.Sprintf(" #%d", m.Seq)
	}
	if m.Amount > 0 {
		text += fmt.Sprintf(" of %d", m.Amount)
	}
	return text
}

// String implements Node.
func (n *transferNode) String() string {
	text := func(st *transfer.State, b *transferBooks) string {
		return fmt.Sprintf("debits %v credits %v | left %d net %d", st.Debits, st.Credits, b.left, b.net)
	}
	live, disk := text(n.machine.State(), n.live), text(&n.state, n.disk)
	if n.lost != 0 {
		live = fmt.Sprintf("knows of a loss %b, ", n.lost) + live
	}
	if string(n.state.Fingerprint(nil)) != string(n.machine.State().Fingerprint(nil)) || *n.live != *n.disk {
		return live + " || durable: " + disk
	}
	return live
}
