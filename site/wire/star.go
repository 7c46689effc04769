package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var starKinds = map[star.Kind]peerv1.StarKind{
	star.Election:   peerv1.StarKind_STAR_KIND_ELECTION,
	star.ElectionOk: peerv1.StarKind_STAR_KIND_ELECTION_OK,
	star.Busy:       peerv1.StarKind_STAR_KIND_BUSY,
	star.Discard:    peerv1.StarKind_STAR_KIND_DISCARD,
	star.Accept:     peerv1.StarKind_STAR_KIND_ACCEPT,
	star.AcceptOk:   peerv1.StarKind_STAR_KIND_ACCEPT_OK,
	star.Abort:      peerv1.StarKind_STAR_KIND_ABORT,
	star.Commit:     peerv1.StarKind_STAR_KIND_COMMIT,
	star.Applied:    peerv1.StarKind_STAR_KIND_APPLIED,
	star.Settled:    peerv1.StarKind_STAR_KIND_SETTLED,
	star.Undecided:  peerv1.StarKind_STAR_KIND_UNDECIDED,
	star.Concluded:  peerv1.StarKind_STAR_KIND_CONCLUDED,
	star.Ended:      peerv1.StarKind_STAR_KIND_ENDED,
}

var starKindsBack = inverse(starKinds)

func inverse[K, V comparable](m map[K]V) map[V]K {
	back := make(map[V]K, len(m))
	for k, v := range m {
		back[v] = k
	}
	return back
}

func encodeStar(m *star.Message) *peerv1.StarMessage {
	return &peerv1.StarMessage{
		Kind: starKinds[m.Kind], Leader: string(m.ID.Leader), Counter: m.ID.Counter, Press: uint32(m.Press),
		Contribution: Contribution(m.Contribution), Value: Value(m.Value), Lost: Names(m.Lost),
	}
}

func decodeStar(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	m := p.GetStar()
	kind, ok := starKindsBack[m.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("star message of unknown kind %d", m.GetKind())
	}
	s := &star.Message{
		Kind: kind, From: from, To: to,
		ID:           star.ID{Leader: avantan.SiteID(m.GetLeader()), Counter: m.GetCounter()},
		Press:        avantan.Press(min(m.GetPress(), uint32(avantan.PressAll))),
		Contribution: ContributionOf(m.GetContribution()), Value: ValueOf(m.GetValue()), Lost: SitesOf(m.GetLost()),
	}
	return message.Envelope{Entity: p.GetEntity(), Generation: p.GetGeneration(), Mark: MarkOf(p.GetMark()), Star: s}, nil
}
