package wire

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

var handoffKinds = map[handoff.Kind]peerv1.HandoffKind{
	handoff.Bequeath: peerv1.HandoffKind_HANDOFF_KIND_BEQUEATH,
	handoff.Ack:      peerv1.HandoffKind_HANDOFF_KIND_ACK,
}

var handoffKindsBack = inverse(handoffKinds)

func encodeHandoff(m *handoff.Message) *peerv1.HandoffMessage {
	p := &peerv1.HandoffMessage{
		Kind: handoffKinds[m.Kind], Number: m.Number, Taken: m.Taken,
	}
	if m.Kind == handoff.Bequeath {
		p.Estate = Estate(&m.Estate)
	}
	return p
}

func decodeHandoff(p *peerv1.ProtocolMessage, from, to core.SiteID) (message.Envelope, error) {
	m := p.GetHandoff()
	kind, ok := handoffKindsBack[m.GetKind()]
	if !ok {
		return message.Envelope{}, fmt.Errorf("handoff message of unknown kind %d", m.GetKind())
	}
	h := &handoff.Message{
		Kind: kind, From: from, To: to, Number: m.GetNumber(),
		Taken: m.GetTaken(),
	}
	if kind == handoff.Bequeath {
		h.Estate = EstateOf(m.GetEstate())
	}
	return message.Envelope{
		Entity: p.GetEntity(), Generation: p.GetGeneration(), Mark: MarkOf(p.GetMark()), Handoff: h, Window: p.GetWindow(),
	}, nil
}

// Estate returns an estate's protobuf form, which shares the items' data.
func Estate(e *handoff.Estate) *peerv1.HandoffEstate {
	p := &peerv1.HandoffEstate{Left: int64(e.Left), Owed: int64(e.Owed), Net: int64(e.Net)}
	for i := range e.Items {
		p.Items = append(p.Items, &peerv1.HandoffItem{Data: e.Items[i].Data, Tokens: int64(e.Items[i].Tokens)})
	}
	return p
}

// EstateOf is the inverse of Estate.
func EstateOf(p *peerv1.HandoffEstate) handoff.Estate {
	e := handoff.Estate{
		Left: avantan.Tokens(p.GetLeft()), Owed: avantan.Tokens(p.GetOwed()), Net: avantan.Tokens(p.GetNet()),
	}
	for _, i := range p.GetItems() {
		e.Items = append(e.Items, handoff.Item{Data: i.GetData(), Tokens: avantan.Tokens(i.GetTokens())})
	}
	return e
}
