package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
)

// send puts a message on its link.
func (s *sim) send(from *node, envelope message.Envelope) {
	messages := []message.Envelope{envelope}
	e := &messages[0]
	s.observe.message(from, e)
	if s.sending != nil {
		s.sending(from, e)
	}
	to := s.nodes[slices.Index(s.names, e.To())]
	if e.Message.Kind == avantan.CatchUp {
		s.report.CatchUps++
	}
	s.mix(uint64(from.i)<<40 | uint64(to.i)<<32 | uint64(e.Message.Kind))
	switch {
	case !s.tracing:
	case e.Vouch != nil:
		s.note("%s -> %s: %+v, mark %+v", from.id, to.id, *e.Vouch, e.Mark)
	case e.Gossip != nil:
		s.note("%s -> %s: %+v", from.id, to.id, e.Gossip.Summaries)
	case e.Audit != nil:
		s.note("%s -> %s: %q/%d audit %+v", from.id, to.id, e.Entity, e.Generation, *e.Audit)
	case e.Claims != nil:
		s.note("%s -> %s: claims %+v", from.id, to.id, *e.Claims)
	case e.Handoff != nil:
		s.note("%s -> %s: %q/%d handoff %+v", from.id, to.id, e.Entity, e.Generation, *e.Handoff)
	case e.Leave != nil:
		s.note("%s -> %s: leave %+v", from.id, to.id, *e.Leave)
	case e.Transfer != nil:
		s.note("%s -> %s: %q/%d transfer %+v", from.id, to.id, e.Entity, e.Generation, *e.Transfer)
	case e.Star != nil:
		s.note("%s -> %s: %q/%d star %v %v", from.id, to.id, e.Entity, e.Generation, e.Star.Kind, e.Star.ID)
	default:
		s.note("%s -> %s: %q/%d %v t=%d b=%v applied=%d", from.id, to.id, e.Entity, e.Generation,
			e.Message.Kind, e.Message.Instance, e.Message.Ballot, e.Message.Applied)
	}
	if s.cut[from.i][to.i] || from.apart || to.apart {
		s.report.Cut++
		return
	}
	if s.fails(Drop, s.chances.drop) {
		return
	}
	if s.o.Encoded {
		var err error
		if *e, err = recode(e); err != nil {
			s.fail(Sound, "encoding a message: %w", err)
			return
		}
	}
	deliver := func() {
		if s.upgrade.links(from, to) {
			to.step(input.Deliver{From: from.id, Messages: messages})
		}
	}
	delay := s.latency[from.i][to.i]
	arrives := s.now + delay + s.r.Int64N(delay/4+1)
	if s.fails(Delay, s.chances.delay) {
		arrives += s.r.Int64N(10 * second)
	}
	last := &s.arrived[from.i][to.i]
	switch {
	case arrives >= *last:
	case !s.faults.Has(Reorder):
		arrives = *last
	case !s.healed:
		s.hit(Reorder)
	}
	*last = max(*last, arrives)
	s.after(arrives-s.now, deliver)
	if s.fails(Duplicate, s.chances.repeat) {
		s.after(delay+s.r.Int64N(5*second), deliver)
	}
}

func recode(e *message.Envelope) (message.Envelope, error) {
	raw, err := proto.Marshal(wire.Encode(e))
	if err != nil {
		return message.Envelope{}, err
	}
	var p peerv1.ProtocolMessage
	if err := proto.Unmarshal(raw, &p); err != nil {
		return message.Envelope{}, err
	}
	return wire.Decode(&p, e.From(), e.To())
}
