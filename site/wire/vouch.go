package wire

import (
	"fmt"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
)

var vouchKinds = map[core.VouchKind]peerv1.VouchKind{
	core.VouchAsk:  peerv1.VouchKind_VOUCH_KIND_ASK,
	core.VouchYes:  peerv1.VouchKind_VOUCH_KIND_YES,
	core.VouchNo:   peerv1.VouchKind_VOUCH_KIND_NO,
	core.VouchWho:  peerv1.VouchKind_VOUCH_KIND_WHO,
	core.VouchTell: peerv1.VouchKind_VOUCH_KIND_TELL,

	core.VouchNothing: peerv1.VouchKind_VOUCH_KIND_NOTHING,
}

var vouchKindsBack = inverse(vouchKinds)

// Mark returns a mark's protobuf form, nil for the zero mark.
func Mark(m core.Mark) *peerv1.Mark {
	if m == (core.Mark{}) {
		return nil
	}
	return &peerv1.Mark{Incarnation: uint64(m.Incarnation), Run: uint64(m.Run), Commits: uint64(m.Commits)}
}

// MarkOf is the inverse of Mark.
func MarkOf(p *peerv1.Mark) core.Mark {
	return core.Mark{
		Incarnation: core.Incarnation(p.GetIncarnation()), Run: core.Run(p.GetRun()), Commits: core.Commits(p.GetCommits()),
	}
}

func encodeVouch(v *core.Vouch) *peerv1.Vouch {
	return &peerv1.Vouch{Kind: vouchKinds[v.Kind], Asked: Mark(v.Asked), Known: Mark(v.Known)}
}

func decodeVouch(p *peerv1.ProtocolMessage, from, to core.SiteID) (core.Envelope, error) {
	v := p.GetVouch()
	kind, ok := vouchKindsBack[v.GetKind()]
	if !ok {
		return core.Envelope{}, fmt.Errorf("message about data of unknown kind %d", v.GetKind())
	}
	return core.Envelope{
		Mark:  MarkOf(p.GetMark()),
		Vouch: &core.Vouch{Kind: kind, From: from, To: to, Asked: MarkOf(v.GetAsked()), Known: MarkOf(v.GetKnown())},
	}, nil
}
