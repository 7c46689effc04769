package wire

import (
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
)

func encodeGossip(g *core.Gossip) *peerv1.Gossip {
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

func decodeGossip(p *peerv1.ProtocolMessage, from, to core.SiteID) core.Envelope {
	g := &core.Gossip{From: from, To: to}
	for _, s := range p.GetGossip().GetSummaries() {
		g.Summaries = append(g.Summaries, core.Summary{
			Entity: s.GetEntity(), Generation: s.GetGeneration(), Left: core.Tokens(s.GetLeft()),
			Median: core.Tokens(s.GetMedian()), Target: core.Tokens(s.GetTarget()), Busy: s.GetBusy(),
			Net: core.Tokens(s.GetNet()), Offered: core.Tokens(s.GetOffered()),
		})
	}
	return core.Envelope{Mark: MarkOf(p.GetMark()), Gossip: g}
}
