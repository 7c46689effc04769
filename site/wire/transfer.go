package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var transferKinds = map[transfer.Kind]peerv1.TransferKind{
	transfer.Ask:      peerv1.TransferKind_TRANSFER_KIND_ASK,
	transfer.Transfer: peerv1.TransferKind_TRANSFER_KIND_TRANSFER,
	transfer.Refuse:   peerv1.TransferKind_TRANSFER_KIND_REFUSE,
	transfer.Ack:      peerv1.TransferKind_TRANSFER_KIND_ACK,
}

var transferKindsBack = inverse(transferKinds)

func encodeTransfer(m *transfer.Message) *peerv1.TransferMessage {
	return &peerv1.TransferMessage{
		Kind: transferKinds[m.Kind], Ask: m.Ask, Seq: m.Seq, Amount: int64(m.Amount), Left: int64(m.Left),
	}
}

func decodeTransfer(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	m := p.GetTransfer()
	kind, ok := transferKindsBack[m.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("transfer message of unknown kind %d", m.GetKind())
	}
	return message.Envelope{
		Entity: p.GetEntity(), Generation: p.GetGeneration(), Mark: MarkOf(p.GetMark()), Window: p.GetWindow(),
		Transfer: &transfer.Message{
			Kind: kind, From: from, To: to, Ask: m.GetAsk(), Seq: m.GetSeq(),
			Amount: avantan.Tokens(m.GetAmount()), Left: avantan.Tokens(m.GetLeft()),
		},
	}, nil
}
