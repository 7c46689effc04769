package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var vouchKinds = map[message.VouchKind]peerv1.VouchKind{
	message.VouchAsk:  peerv1.VouchKind_VOUCH_KIND_ASK,
	message.VouchYes:  peerv1.VouchKind_VOUCH_KIND_YES,
	message.VouchNo:   peerv1.VouchKind_VOUCH_KIND_NO,
	message.VouchWho:  peerv1.VouchKind_VOUCH_KIND_WHO,
	message.VouchTell: peerv1.VouchKind_VOUCH_KIND_TELL,

	message.VouchNothing: peerv1.VouchKind_VOUCH_KIND_NOTHING,
}

var vouchKindsBack = inverse(vouchKinds)

// Mark returns a mark's protobuf form, nil for the zero mark.
func Mark(m message.Mark) *peerv1.Mark {
	if m == (message.Mark{}) {
		return nil
	}
	return &peerv1.Mark{Incarnation: uint64(m.Incarnation), Run: uint64(m.Run), Commits: uint64(m.Commits)}
}

// MarkOf is the inverse of Mark.
func MarkOf(p *peerv1.Mark) message.Mark {
	return message.Mark{
		Incarnation: message.Incarnation(p.GetIncarnation()), Run: message.Run(p.GetRun()), Commits: message.Commits(p.GetCommits()),
	}
}

func encodeVouch(v *message.Vouch) *peerv1.Vouch {
	return &peerv1.Vouch{Kind: vouchKinds[v.Kind], Asked: Mark(v.Asked), Known: Mark(v.Known), Members: uint32(v.Members), Out: Names(v.Out)}
}

func decodeVouch(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	v := p.GetVouch()
	kind, ok := vouchKindsBack[v.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("message about data of unknown kind %d", v.GetKind())
	}
	if v.GetMembers() > avantan.MaxMembers {
		return message.Envelope{}, fmt.Errorf("message about data of a cluster of %d members, at most %d", v.GetMembers(), avantan.MaxMembers)
	}
	if len(v.GetOut()) > avantan.MaxMembers {
		return message.Envelope{}, fmt.Errorf("message about data: %d sites are out, at most %d", len(v.GetOut()), avantan.MaxMembers)
	}
	vouch := &message.Vouch{
		Kind: kind, From: from, To: to, Asked: MarkOf(v.GetAsked()), Known: MarkOf(v.GetKnown()), Members: int(v.GetMembers()),
		Out: SitesOf(v.GetOut()),
	}
	return message.Envelope{Mark: MarkOf(p.GetMark()), Vouch: vouch}, nil
}
