package sites

import (
	"fmt"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// counts is the activity of the sites.
type counts struct {
	begun                                      map[string]int
	waited, applied, failed, gaveUp            int
	messages, messageBytes, gossip, gossipSize int
	moved                                      int64
	// incomplete counts stale reads without recent word of some site, asked the
	// questions of exact reads, inexact the exact reads without a consistent cut.
	incomplete, asked, inexact int
	// refusals counts acquires refused for other reasons than a lack of tokens.
	refusals map[answer.Code]int
}

// Counters implements virtual.System.
func (s *Sites) Counters() map[string]float64 {
	d := &s.did
	all := map[string]float64{
		virtual.Waited: float64(d.waited), virtual.Applied: float64(d.applied), virtual.Failed: float64(d.failed),
		virtual.GaveUp: float64(d.gaveUp), virtual.Messages: float64(d.messages), virtual.MessageBytes: float64(d.messageBytes),
		virtual.Gossip: float64(d.gossip), virtual.GossipBytes: float64(d.gossipSize), virtual.Moved: float64(d.moved),
	}
	for name, n := range map[string]int{"reads incomplete": d.incomplete, "shares asked": d.asked, "reads inexact": d.inexact} {
		if n > 0 {
			all[name] = float64(n)
		}
	}
	for reason, n := range d.begun {
		all[virtual.Begun+" "+reason] = float64(n)
	}
	for code, n := range d.refusals {
		all["refused "+code.String()] = float64(n)
	}
	return all
}

// refusedBy counts an acquire refused for another reason than a lack of tokens.
func (d *counts) refusedBy(code answer.Code) {
	if d.refusals == nil {
		d.refusals = make(map[answer.Code]int)
	}
	d.refusals[code]++
}

// happened counts an event.
func (at *site) happened(e *event.Event) {
	d := &at.s.did
	switch e.Kind {
	case event.RedistributionStarted:
		d.begun[variantName(e.Variant)+" "+e.Trigger]++
	case event.RedistributionApplied:
		d.applied++
	case event.RedistributionFailed:
		d.failed++
	case event.GaveUp:
		d.gaveUp++
	case event.ProtocolFault:
		at.s.fail("site %s: protocol fault: %w", at.id, e.Err)
	case event.ForecastDropped:
		at.s.fail("site %s has not taken up what its model had learnt", at.id)
	}
}

func variantName(v policy.Variant) string {
	switch v {
	case policy.Majority:
		return "majority"
	case policy.Star:
		return "star"
	case policy.Direct:
		return "direct"
	}
	return fmt.Sprintf("variant-%d", v)
}

// count counts a message, and returns its size on the wire, in bytes.
func (at *site) count(m *message.Envelope) int {
	d := &at.s.did
	switch {
	case m.Gossip != nil:
		// All other sites get the same summaries.
		if told := m.Gossip.Summaries; len(at.gossip) == 0 || &told[0] != &at.gossip[0] {
			at.gossip, at.gossipSize = told, sizeOf(m)
		}
		d.gossip++
		d.gossipSize += at.gossipSize
		return at.gossipSize
	case m.Entity != "":
		size := sizeOf(m)
		d.messages++
		d.messageBytes += size
		return size
	}
	return sizeOf(m)
}

// sizeOf returns the size of a message in a batch of a link, in bytes.
func sizeOf(m *message.Envelope) int {
	const tag = 1
	return tag + protowire.SizeBytes(proto.Size(wire.Encode(m)))
}
