package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var leaveKinds = map[message.LeaveKind]peerv1.LeaveKind{
	message.LeaveAsk:   peerv1.LeaveKind_LEAVE_KIND_ASK,
	message.LeaveClear: peerv1.LeaveKind_LEAVE_KIND_CLEAR,
	message.LeaveEmpty: peerv1.LeaveKind_LEAVE_KIND_EMPTY,
	message.LeaveOut:   peerv1.LeaveKind_LEAVE_KIND_OUT,
}

var leaveKindsBack = inverse(leaveKinds)

func encodeLeave(l *message.Leave) *peerv1.Leave {
	return &peerv1.Leave{Kind: leaveKinds[l.Kind], Since: uint64(l.Since)}
}

func decodeLeave(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	l := p.GetLeave()
	kind, ok := leaveKindsBack[l.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("message about a site that leaves, of unknown kind %d", l.GetKind())
	}
	return message.Envelope{
		Mark:  MarkOf(p.GetMark()),
		Leave: &message.Leave{Kind: kind, From: from, To: to, Since: avantan.Instance(l.GetSince())},
	}, nil
}
