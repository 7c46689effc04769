package explore

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
)

// A site that leaves for good: once no instance counts on its tokens, it hands all that it
// has to its heir by bequests. Then it says that it is empty. Who hears that hears the
// leaver no more.
//
// Under the majority the entity's sequence adopts a view without the leaver, which grants
// until it has applied that. Under the any-subset variant the leaver takes part in no
// further instance from a moment of its own on, and grants nothing. It says that it is
// empty once both others have told that no instance with it is open there.
//
// The decisions here are copies of decisions in site/core (hand_over.go, leaving.go): when
// a bequest may begin, when a leaver is empty, what is under way with it, and that nobody
// hears a site that is out. The heir knows of the drain from the beginning.

const (
	heir   = 1
	leaver = Sites - 1
)

// The names of the acts of a drain.
const (
	actHandOver = "hands over to its heir"
	actBequeath = "sends its bequest again"
	actEndLease = "ends its lease"
	actLeaves   = "says that it is empty"
)

// drains is what a variant has of drains.
type drains struct {
	// heirs configure the handoffs.
	heirs [Sites]*handoff.Config
	// without, in tests, leaves out rules.
	without map[rule]bool
	// forgets, in tests, changes the durable state of handoffs at a restart.
	forgets func(*handoff.State)
}

func newDrains() drains {
	var d drains
	for i, self := range siteNames {
		d.heirs[i] = &handoff.Config{Self: self, MaxItems: 1, Backoff: backoff, MaxBackoff: 16 * backoff, Rand: &random{uint64(i)}}
		if err := d.heirs[i].Validate(); err != nil {
			panic(err) // a constant
		}
	}
	return d
}

// handing is a site's part in a drain.
type handing struct {
	drains *drains
	place  int
	hand   *handoff.Machine
	// handed is the durable state of hand.
	handed handoff.State
	// gone says that this site knows, durably, that the leaver is out.
	gone bool
}

func (d *drains) newHanding(site int, has *estate) handing {
	return handing{drains: d, place: site, hand: handoff.New(d.heirs[site], has, handoff.State{})}
}

func (h *handing) handClone(has *estate) handing {
	c := *h
	c.hand, c.handed = h.hand.Clone(has), h.handed.Clone()
	return c
}

func (h *handing) handKey(dst []byte) []byte {
	return appendBool(h.handed.Fingerprint(h.hand.State().Fingerprint(dst)), h.gone)
}

// handAgain is a crash and a new start.
func (h *handing) handAgain(has *estate) {
	if h.drains.forgets != nil {
		h.drains.forgets(&h.handed)
	}
	h.hand = handoff.New(h.drains.heirs[h.place], has, h.handed.Clone())
}

// handRank is how far the handoffs are, for Rank.
func (h *handing) handRank() int {
	r := 0
	for _, g := range h.hand.State().Given {
		r += 2 * int(g.Number)
	}
	for _, t := range h.hand.State().Taken {
		r += 2 * int(t.Number)
	}
	if h.hand.Open() {
		r--
	}
	return r
}

// mayBequeath reports whether a bequest may begin of what a site has, as
// leaving.mayBequeath of site/core. outside says that no further instance takes tokens of
// the site.
func (h *handing) mayBequeath(has *estate, outside bool, offers int) bool {
	return h.place == leaver && outside && offers == 0 && !h.hand.Open() && has.holds()
}

// empty reports whether a leaver has handed over all, as leaving.rests of site/core.
func (h *handing) empty(has *estate, outside bool, offers int) bool {
	without := h.drains.without
	return h.place == leaver && outside && offers == 0 && has.left == 0 &&
		(has.net == 0 || without[netIsHandedOver]) && (!h.hand.Open() || without[emptyIsClosed])
}

// frozen reports whether the site's lease is in its open bequest.
func (h *handing) frozen() bool {
	open := h.hand.State().Open
	return open != nil && len(open.Estate.Items) > 0 && !h.drains.without[leasesAreFrozen]
}

// handActs are what a drain lets happen at a site.
func (h *handing) handActs(has *estate, outside bool, offers int, isClear bool) []Act {
	var acts []Act
	if h.mayBequeath(has, outside, offers) {
		acts = append(acts, Act{actHandOver, Free})
	}
	if h.hand.Open() {
		acts = append(acts, Act{actBequeath, Free})
	}
	if has.lease > 0 && !h.frozen() {
		acts = append(acts, Act{actEndLease, Free})
	}
	if isClear && h.empty(has, outside, offers) {
		acts = append(acts, Act{actLeaves, Free})
	}
	return acts
}

// emptied says that a leaver has handed over all. Members then retire it.
type emptied struct{}

// sayEmpty are the messages of a leaver that is empty.
func sayEmpty() (list []Packet) {
	for to := range leaver {
		list = append(list, Packet{From: leaver, To: to, Key: fmt.Sprintf("empty %d", to), Body: &emptied{}, Text: "that it is empty"})
	}
	return list
}

// handStep takes a step of the handoffs at a time. It returns whether the whole site has to
// become durable before the messages leave, for tell.
func (h *handing) handStep(now avantan.Tick, in handoff.Input, step *Step) (persist bool, list []handoff.Message) {
	out := h.hand.Step(now, in)
	if out.Err != nil {
		step.Broken = append(step.Broken, Violation{SelfCheck, fmt.Sprintf("%s: %v", siteNames[h.place], out.Err)})
	}
	return out.Persist, out.Messages
}

// tell sends messages of a step, once all is durable that must be.
func (h *handing) tell(list []handoff.Message, step *Step) {
	fail := func(invariant, format string, args ...any) {
		step.Broken = append(step.Broken, Violation{invariant, fmt.Sprintf("%s ", siteNames[h.place]) + fmt.Sprintf(format, args...)})
	}
	if err := h.handed.Validate(); err != nil {
		fail(SelfCheck, "stores %v", err)
	}
	for i := range list {
		m := &list[i]
		to := int(m.To[0] - siteNames[0][0])
		if h.gone && to == leaver {
			continue
		}
		if why := h.unhanded(m); why != "" {
			fail(DurableFirst, "sends %s: %s", handText(m), why)
		}
		step.Send = append(step.Send, Packet{From: h.place, To: to, Key: "hand" + string(m.Fingerprint(nil)), Body: m, Text: handText(m)})
	}
}

// unhanded names the claim of a message that is not durable; "" if there is none.
func (h *handing) unhanded(m *handoff.Message) string {
	open := h.handed.Open
	switch {
	case m.Kind == handoff.Bequeath && (open == nil || open.Number != m.Number):
		return "not open"
	case m.Taken > takenOf(&h.handed, m.To).Number:
		return "not taken"
	}
	return ""
}

// takenOf is the last bequest of a leaver that a site has taken.
func takenOf(s *handoff.State, leaver avantan.SiteID) handoff.Taken {
	for _, t := range s.Taken {
		if t.Leaver == leaver {
			return t
		}
	}
	return handoff.Taken{}
}

// handText describes a message.
func handText(m *handoff.Message) string {
	text := fmt.Sprint(m.Kind)
	if m.Kind == handoff.Bequeath {
		e := &m.Estate
		text += fmt.Sprintf(" #%d left %d owed %d net %d leases %d", m.Number, e.Left, e.Owed, e.Net, len(e.Items))
	}
	if m.Taken > 0 {
		text += fmt.Sprintf(", #%d taken", m.Taken)
	}
	return text
}

// handDescribe describes a site's part in a drain.
func (h *handing) handDescribe(has *estate) string {
	s := h.hand.State()
	return fmt.Sprintf("lease %d gone %v given %v taken %v open %v, ", has.lease, h.gone, s.Given, s.Taken, s.Open)
}
