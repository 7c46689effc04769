package wire_test

import (
	"reflect"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/transfer"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

var sites = rapid.SampledFrom([]core.SiteID{"as", "au", "eu", "sa", "us"})

// ballot draws a ballot. The zero ballot stands for none.
func ballot(t *rapid.T, name string) avantan.Ballot {
	if rapid.IntRange(0, 3).Draw(t, name+" is zero") == 0 {
		return avantan.Ballot{}
	}
	return avantan.Ballot{Number: rapid.Uint64().Draw(t, name), Site: sites.Draw(t, name+" site")}
}

func contribution(t *rapid.T) avantan.Contribution {
	tokens := func(name string) avantan.Tokens { return avantan.Tokens(rapid.Int64().Draw(t, name)) }
	return avantan.Contribution{
		Site: sites.Draw(t, "site"), Offered: tokens("offered"), Wanted: tokens("wanted"), Queued: tokens("queued"), Kept: tokens("kept"),
		Median: tokens("median"),
	}
}

func value(t *rapid.T) avantan.Value {
	v := avantan.Value{Policy: rapid.SampledFrom([]string{"", "demand", "paper"}).Draw(t, "policy")}
	for range rapid.IntRange(0, 5).Draw(t, "contributions") {
		v.Contributions = append(v.Contributions, contribution(t))
	}
	if rapid.Bool().Draw(t, "changes") {
		v.Change = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "change")
	}
	return v
}

func mark(t *rapid.T, name string) message.Mark {
	return message.Mark{
		Incarnation: message.Incarnation(rapid.Uint64().Draw(t, name+" incarnation")),
		Run:         message.Run(rapid.Uint64().Draw(t, name+" run")),
		Commits:     message.Commits(rapid.Uint64().Draw(t, name+" commits")),
	}
}

func envelope(t *rapid.T) message.Envelope {
	if rapid.IntRange(0, 4).Draw(t, "about data") == 0 {
		return message.Envelope{Mark: mark(t, "mark"), Vouch: &message.Vouch{
			Kind: message.VouchKind(rapid.IntRange(int(message.VouchAsk), int(message.VouchNothing)).Draw(t, "kind")),
			From: sites.Draw(t, "from"), To: sites.Draw(t, "to"), Asked: mark(t, "asked"), Known: mark(t, "known"), Members: rapid.IntRange(0, 64).Draw(t, "members"),
		}}
	}
	if rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
		return message.Envelope{Mark: mark(t, "mark"), Leave: &message.Leave{
			Kind: message.LeaveKind(rapid.IntRange(int(message.LeaveAsk), int(message.LeaveOut)).Draw(t, "kind")),
			From: sites.Draw(t, "from"), To: sites.Draw(t, "to"), Since: avantan.Instance(rapid.Uint64().Draw(t, "since")),
		}}
	}
	if rapid.IntRange(0, 4).Draw(t, "gossips") == 0 {
		tokens := func(name string) avantan.Tokens { return avantan.Tokens(rapid.Int64().Draw(t, name)) }
		g := &message.Gossip{From: sites.Draw(t, "from"), To: sites.Draw(t, "to")}
		for range rapid.IntRange(0, 3).Draw(t, "summaries") {
			g.Summaries = append(g.Summaries, message.Summary{
				Entity: rapid.SampledFrom([]string{"e", "a/b"}).Draw(t, "entity"), Generation: rapid.Uint64().Draw(t, "generation"),
				Left: tokens("left"), Median: tokens("median"), Target: tokens("target"),
				Busy: rapid.Bool().Draw(t, "busy"),
			})
		}
		return message.Envelope{Mark: mark(t, "mark"), Gossip: g}
	}
	if rapid.IntRange(0, 4).Draw(t, "transfers") == 0 {
		tokens := func(name string) avantan.Tokens { return avantan.Tokens(rapid.Int64().Draw(t, name)) }
		return message.Envelope{Mark: mark(t, "mark"), Entity: "a/b", Generation: rapid.Uint64().Draw(t, "generation"), Transfer: &transfer.Message{
			Kind: transfer.Kind(rapid.IntRange(int(transfer.Ask), int(transfer.Ack)).Draw(t, "kind")),
			From: sites.Draw(t, "from"), To: sites.Draw(t, "to"), Ask: rapid.Uint64().Draw(t, "ask"), Seq: rapid.Uint64().Draw(t, "seq"),
			Amount: tokens("amount"), Left: tokens("left"),
		}}
	}
	if rapid.IntRange(0, 4).Draw(t, "handoffs") == 0 {
		tokens := func(name string) avantan.Tokens { return avantan.Tokens(rapid.Int64().Draw(t, name)) }
		m := &handoff.Message{
			Kind: handoff.Kind(rapid.IntRange(int(handoff.Bequeath), int(handoff.Ack)).Draw(t, "kind")),
			From: sites.Draw(t, "from"), To: sites.Draw(t, "to"), Number: rapid.Uint64().Draw(t, "number"),
			Taken: rapid.Uint64().Draw(t, "taken"),
		}
		if m.Kind == handoff.Bequeath {
			m.Estate = handoff.Estate{Left: tokens("left"), Owed: tokens("owed"), Net: tokens("net")}
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				m.Estate.Items = append(m.Estate.Items, handoff.Item{
					Data: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "data"), Tokens: tokens("tokens"),
				})
			}
		}
		return message.Envelope{Mark: mark(t, "mark"), Entity: "a/b", Generation: rapid.Uint64().Draw(t, "generation"), Handoff: m}
	}
	e := message.Envelope{
		Mark:   mark(t, "mark"),
		Entity: rapid.SampledFrom([]string{"", "e", "a/b"}).Draw(t, "entity"), Generation: rapid.Uint64().Draw(t, "generation"),
		Message: avantan.Message{
			Kind: avantan.Kind(rapid.IntRange(int(avantan.Election), int(avantan.CatchUp)).Draw(t, "kind")),
			From: sites.Draw(t, "from"), To: sites.Draw(t, "to"), Instance: avantan.Instance(rapid.Uint64().Draw(t, "instance")),
			Ballot: ballot(t, "ballot"), Promised: ballot(t, "promised"), AcceptedAt: ballot(t, "accepted at"),
			Press:   avantan.Press(rapid.IntRange(0, int(avantan.PressAll)).Draw(t, "press")),
			Applied: avantan.Instance(rapid.Uint64().Draw(t, "applied")),
		},
	}
	m := &e.Message
	if rapid.Bool().Draw(t, "contributes") {
		m.Contribution = new(contribution(t))
	}
	if rapid.Bool().Draw(t, "has a value") {
		m.Value = new(value(t))
	}
	for range rapid.IntRange(0, 3).Draw(t, "kept") {
		m.Kept = append(m.Kept, avantan.Kept{
			Peer: sites.Draw(t, "peer"), Instance: avantan.Instance(rapid.Uint64().Draw(t, "kept instance")), Value: value(t),
		})
	}
	if rapid.Bool().Draw(t, "has a snapshot") {
		m.Snapshot = rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "snapshot")
	}
	return e
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := envelope(t)
		raw, err := proto.Marshal(wire.Encode(&want))
		if err != nil {
			t.Fatal(err)
		}
		var p peerv1.ProtocolMessage
		if err := proto.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		got, err := wire.Decode(&p, want.From(), want.To())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: got %+v\nwant %+v", err, got, want)
		}
	})
}

// TestKindsHaveNames: each kind has a form of its own on the wire.
func TestKindsHaveNames(t *testing.T) {
	seen := make(map[peerv1.MessageKind]avantan.Kind)
	for k := avantan.Election; k <= avantan.CatchUp; k++ {
		p := wire.Encode(&message.Envelope{Message: avantan.Message{Kind: k}})
		if other, ok := seen[p.GetKind()]; ok || p.GetKind() == peerv1.MessageKind_MESSAGE_KIND_UNSPECIFIED {
			t.Errorf("%v is %v, as is %v", k, p.GetKind(), other)
		}
		seen[p.GetKind()] = k
	}
	if n := len(peerv1.MessageKind_name); n != len(seen)+1 {
		t.Errorf("%d kinds on the wire, %d in the protocol", n-1, len(seen))
	}
}

func TestUnknownKind(t *testing.T) {
	for _, kind := range []peerv1.MessageKind{peerv1.MessageKind_MESSAGE_KIND_UNSPECIFIED, 999, -1} {
		if e, err := wire.Decode(&peerv1.ProtocolMessage{Kind: kind}, "a", "b"); err == nil {
			t.Errorf("kind %d: %+v", kind, e)
		}
		vouch := &peerv1.Vouch{Kind: peerv1.VouchKind(kind)}
		if e, err := wire.Decode(&peerv1.ProtocolMessage{Vouch: vouch}, "a", "b"); err == nil {
			t.Errorf("kind %d about data: %+v", kind, e)
		}
		move := &peerv1.TransferMessage{Kind: peerv1.TransferKind(kind)}
		if e, err := wire.Decode(&peerv1.ProtocolMessage{Transfer: move}, "a", "b"); err == nil {
			t.Errorf("kind %d of a transfer: %+v", kind, e)
		}
	}
}
