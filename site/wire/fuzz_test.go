package wire_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/handoff"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/testfuzz"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/wire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// seeds are envelopes of all kinds and fields, from site b to site a, that a core with
// entity e in generation 1 takes up. TestSeedsCoverTheWire names any missing field.
func seeds() []message.Envelope {
	value := &avantan.Value{
		Policy: "demand", Change: []byte(`{"request_id":"r","body":1,"limit":900}`),
		Contributions: []avantan.Contribution{
			{Site: "a", Offered: 4, Wanted: 2}, {Site: "b", Offered: 3, Wanted: 9, Queued: 1, Median: 2, Kept: 1, Window: 7},
		},
	}
	create := &avantan.Value{
		Policy: "demand", Change: []byte(`[{"kind":"create","name":"f","limit":10,"request_id":"c","body":2}]`),
	}
	mark := message.Mark{Incarnation: 1, Run: 2, Commits: 3}
	es := []message.Envelope{
		{Gossip: &message.Gossip{From: "b", To: "a", Summaries: []message.Summary{
			{Entity: "e", Generation: 1, Left: 2, Median: 3, Target: 4, Busy: true, Net: 5, Offered: 6},
		}}},
		{Message: avantan.Message{Kind: avantan.Decision, Instance: 1, Ballot: avantan.Ballot{Number: 1, Site: "b"}, Value: create}},
		{Message: avantan.Message{Kind: avantan.CatchUp, Applied: 3, Snapshot: []byte(
			`{"whole":{"generation":7,"numbered":2,"mode":{},"entities":[{"name":"g","generation":7,"limit":5}],"changes":[]}}`)}},
		{Message: avantan.Message{Kind: avantan.CatchUp, Applied: 2, Snapshot: []byte(
			`{"missed":[{"Number":1,"Instance":1,"Change":{"kind":"delete","name":"e","request_id":"d"}}]}`)}},
	}
	for k := avantan.Election; k <= avantan.CatchUp; k++ {
		m := avantan.Message{Kind: k, Instance: 1, Ballot: avantan.Ballot{Number: 3, Site: "b"}}
		switch k {
		case avantan.Election:
			m.Press = avantan.PressAll
		case avantan.ElectionOk:
			m.Contribution, m.Value = &value.Contributions[1], value
			m.AcceptedAt, m.Promised = avantan.Ballot{Number: 1, Site: "b"}, avantan.Ballot{Number: 3, Site: "b"}
		case avantan.Accept, avantan.Decision:
			m.Value = value
		case avantan.CatchUp:
			m.Applied, m.Snapshot = 2, []byte(`{"limit":900,"version":2}`)
			m.Kept = []avantan.Kept{{Peer: "a", Instance: 1, Value: *value}}
		}
		es = append(es, message.Envelope{Entity: "e", Generation: 1, Message: m})
	}
	for k := star.Election; k <= star.Ended; k++ {
		es = append(es, message.Envelope{Entity: "e", Generation: 1, Star: &star.Message{
			Kind: k, ID: star.ID{Leader: "b", Counter: 1}, Press: avantan.PressAll,
			Contribution: &value.Contributions[1], Value: &avantan.Value{Policy: "demand", Contributions: value.Contributions},
			Lost: []avantan.SiteID{"c", "d"},
		}})
	}
	for k := transfer.Ask; k <= transfer.Ack; k++ {
		es = append(es, message.Envelope{Entity: "e", Generation: 1, Transfer: &transfer.Message{Kind: k, Ask: 1, Seq: 1, Amount: 5, Left: 2}, Window: 7})
	}
	items := []handoff.Item{{Data: []byte(`{"id":"l","ttl":1000,"remaining":500}`), Tokens: 2}}
	es = append(
		es,
		message.Envelope{Entity: "e", Generation: 1, Handoff: &handoff.Message{
			Kind: handoff.Bequeath, Number: 1, Estate: handoff.Estate{Left: 5, Net: 4, Items: items},
		}, Window: 7},
		message.Envelope{Entity: "e", Generation: 1, Handoff: &handoff.Message{
			Kind: handoff.Bequeath, Number: 2, Estate: handoff.Estate{Owed: 5, Net: -4}, Taken: 3,
		}},
		message.Envelope{Entity: "e", Generation: 1, Handoff: &handoff.Message{Kind: handoff.Ack, Taken: 1}},
	)
	for k := message.VouchAsk; k <= message.VouchNothing; k++ {
		es = append(es, message.Envelope{Vouch: &message.Vouch{Kind: k, Asked: mark, Known: mark, Members: 5, Out: []core.SiteID{"c"}}})
	}
	for k := message.LeaveAsk; k <= message.LeaveOut; k++ {
		es = append(es, message.Envelope{Leave: &message.Leave{Kind: k, Since: 7}})
	}
	for k := message.UndoAcquire; k <= message.ReturnLease; k++ {
		es = append(es, message.Envelope{Claims: &message.Claims{Asks: []message.ClaimAsk{{
			Number: 1, Kind: k, Key: attempt.Key{1}, Body: 2, Entity: "e", Tokens: 3, Attempt: 1, NotAfter: 1 << 42,
		}}}})
	}
	for v := message.NeverRan; v <= message.Forgotten; v++ {
		es = append(es, message.Envelope{Claims: &message.Claims{Answers: []message.ClaimAnswer{{Number: 1, Verdict: v}}}})
	}
	for s := message.AuditWatch; s <= message.AuditTell; s++ {
		es = append(es, message.Envelope{Entity: "e", Generation: 1, Audit: &message.Audit{Number: 1, Step: s, Net: 5, Watch: 1 << 63, Shape: 7, Still: true, Held: -3, Applied: 4}})
	}
	for i := range es {
		es[i].Mark = mark
		es[i].Trace = &spanctx.Context{Trace: [16]byte{1}, Span: [8]byte{2}}
	}
	return es
}

// TestSeedsCoverTheWire: the seeds hold every field of a message that exists, and
// every value of every enum in it.
func TestSeedsCoverTheWire(t *testing.T) {
	fields := make(map[protoreflect.FullName]bool)
	values := make(map[protoreflect.FullName]bool)
	var note func(m protoreflect.Message)
	note = func(m protoreflect.Message) {
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			fields[f.FullName()] = true
			switch {
			case f.Enum() != nil:
				values[f.Enum().Values().ByNumber(v.Enum()).FullName()] = true
			case f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					note(v.List().Get(i).Message())
				}
			default:
				note(v.Message())
			}
			return true
		})
	}
	for _, e := range seeds() {
		note(wire.Encode(&e).ProtoReflect())
	}
	seen := make(map[protoreflect.FullName]bool)
	var check func(m protoreflect.MessageDescriptor)
	check = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if !fields[f.FullName()] {
				t.Errorf("no seed has %s", f.FullName())
			}
			if f.Enum() != nil {
				for j := 1; j < f.Enum().Values().Len(); j++ { // the first is never sent
					if v := f.Enum().Values().Get(j).FullName(); !values[v] {
						t.Errorf("no seed has %s", v)
					}
				}
			}
			if f.Message() != nil {
				check(f.Message())
			}
		}
	}
	check((*peerv1.ProtocolMessage)(nil).ProtoReflect().Descriptor())
}

func marshal(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// FuzzDecode: decoding arbitrary bytes returns a message or fails. A decoded message is
// encoded and decoded to the same again.
func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, e := range seeds() {
		f.Add(marshal(f, wire.Encode(&e)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p peerv1.ProtocolMessage
		if proto.Unmarshal(raw, &p) != nil {
			return
		}
		e, err := wire.Decode(&p, "b", "a")
		if err != nil {
			return
		}
		if e.From() != "b" || e.To() != "a" {
			t.Fatalf("from %q to %q", e.From(), e.To())
		}
		again, err := wire.Decode(wire.Encode(&e), "b", "a")
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%v: %+v, again %+v", err, e, again)
		}
	})
}

// FuzzDeliver: a core takes all decoded messages, in any order, and goes on. A core
// starts on the records stored meanwhile.
func FuzzDeliver(tf *testing.F) {
	f := testfuzz.On(tf)
	whole := &peerv1.Batch{}
	for _, e := range seeds() {
		p := wire.Encode(&e)
		f.Add(marshal(f, &peerv1.Batch{Messages: []*peerv1.ProtocolMessage{p}}))
		whole.Messages = append(whole.Messages, p)
	}
	f.Add(marshal(f, whole))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var batch peerv1.Batch
		if proto.Unmarshal(raw, &batch) != nil {
			return
		}
		var messages []message.Envelope
		for _, p := range batch.GetMessages() {
			if e, err := wire.Decode(p, "b", "a"); err == nil {
				messages = append(messages, e)
			}
		}
		// A core with an odd number of messages has to be vouched for first.
		s := newReceiver(t, message.Run(len(messages)%2)) //nolint:gosec // 0 or 1
		s.step(input.Deliver{From: "b", Messages: messages})
		s.step(&input.Acquire{Call: 1, Entity: "e", Tokens: 2000, Request: attempt.Key{9}, Wait: 5000})
		s.step(input.Deliver{From: "b", Messages: messages})
		s.wake(20)
		s.start()
		s.step(input.Deliver{From: "b", Messages: messages})
		s.wake(20)
		s.step(input.Stop{})
	})
}

// receiver is a core with its disk, that nobody answers.
type receiver struct {
	t    *testing.T
	core *core.Core
	disk *coretest.Memory
	now  input.Now
	run  message.Run
}

func newReceiver(t *testing.T, run message.Run) *receiver {
	t.Helper()
	s := &receiver{t: t, run: run, disk: coretest.NewMemory(1), now: input.Now{Tick: 1, Wall: 1_700_000_000_000}}
	records := stored.Records{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "e", Generation: 1, Initial: 1000, Limit: 1000, Version: 1}},
		Books:     []stored.Books{{Name: "e", Generation: 1, Left: 500}},
	}
	if err := s.disk.Commit(&records); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

// start starts a core on the stored records.
func (s *receiver) start() {
	from, err := s.disk.Load()
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := core.Config{Self: "a", Members: []core.SiteID{"a", "b", "c"}, Run: s.run, Rand: rand.New(rand.NewPCG(1, 2))}
	if s.core, err = core.New(cfg, from); err != nil {
		s.t.Fatalf("no core starts on what was stored: %v", err)
	}
}

func (s *receiver) step(in input.Input) {
	s.core.Step(s.now, in)
	for s.core.Pending() {
		var out core.Effects
		s.core.Drain(&out)
		if err := s.disk.Commit(&out.Records); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wake gives the core its next wakes.
func (s *receiver) wake(times int) {
	for range times {
		at := s.core.WakeAt()
		if at == 0 {
			return
		}
		if at > s.now.Tick {
			s.now.Wall += int64(min(at-s.now.Tick, 1<<40)) //nolint:gosec // bounded
			s.now.Tick = at
		}
		s.step(input.Wake{})
	}
}
