package wire

import (
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

func encodeGossip(g *message.Gossip) *peerv1.Gossip {
	p := &peerv1.Gossip{Summaries: make([]*peerv1.Summary, 0, len(g.Summaries))}
	for i := range g.Summaries {
		s := &g.Summaries[i]
		p.Summaries = append(p.Summaries, &peerv1.Summary{
			Entity: s.Entity, Generation: s.Generation, Left: int64(s.Left), Median: int64(s.Median), Target: int64(s.Target), Busy: s.Busy,
			Net: int64(s.Net), Offered: int64(s.Offered),
		})
	}
	return p
}

func decodeGossip(p *peerv1.ProtocolMessage, from, to core.SiteID) message.Envelope {
	g := &message.Gossip{From: from, To: to}
	for _, s := range p.GetGossip().GetSummaries() {
		g.Summaries = append(g.Summaries, message.Summary{
			Entity: s.GetEntity(), Generation: s.GetGeneration(), Left: core.Tokens(s.GetLeft()),
			Median: core.Tokens(s.GetMedian()), Target: core.Tokens(s.GetTarget()), Busy: s.GetBusy(),
			Net: core.Tokens(s.GetNet()), Offered: core.Tokens(s.GetOffered()),
		})
	}
	return message.Envelope{Mark: MarkOf(p.GetMark()), Gossip: g}
}
