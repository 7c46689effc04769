package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// spanOf is the span that a test's acquire has.
var spanOf = spanctx.Context{Trace: [16]byte{7}, Span: [8]byte{8}}

// traced begins an acquire whose trace is recorded.
func (r *rig) traced(site core.SiteID, entity string, tokens core.Tokens, wait core.Tick) input.Call {
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: entity, Tokens: tokens, Request: attempt.KeyOf("traced"), Wait: wait, Trace: new(spanOf),
	})
	return call
}

// spans returns the spans told so far, and checks that each has an id of its own in the one trace.
func (r *rig) spans() []*event.Span {
	r.t.Helper()
	var all []*event.Span
	seen := map[[8]byte]bool{spanOf.Span: true}
	for _, e := range r.events {
		if e.Kind != event.SpanEnded {
			continue
		}
		if e.Span.Own.Trace != spanOf.Trace || seen[e.Span.Own.Span] {
			r.t.Errorf("%s has the id %x", e.Span.Name, e.Span.Own)
		}
		seen[e.Span.Own.Span] = true
		all = append(all, e.Span)
	}
	return all
}

// below returns the spans of a name right below a span.
func below(all []*event.Span, of *spanctx.Context, name string) []*event.Span {
	return slices.DeleteFunc(slices.Clone(all), func(s *event.Span) bool { return s.Name != name || *s.Parent != *of })
}

// tracing is a configuration of sites that record spans.
func tracing(strategy, protocol string) func(*core.Config) {
	return func(c *core.Config) {
		c.Strategy, c.Trigger, c.Protocol, c.Traces = strategy, "reactive", protocol, true
	}
}

// TestSpansOfATransfer: the wait of an acquire has the transfer below it, and that has the work of
// each donor, and below it the receipt.
func TestSpansOfATransfer(t *testing.T) {
	r := newRig(t, 3, tracing("transfer", "auto"))
	r.create("acme/vm", 300)
	call := r.traced("a", "acme/vm", 150, 5000)
	r.advance(1000)
	r.wantCode(r.answer(call), answer.OK)
	all := r.spans()
	waits := below(all, &spanOf, event.WaitSpan)
	if len(waits) != 1 || waits[0].Outcome != "granted" || waits[0].Tokens != 150 || waits[0].Entity != "acme/vm" || waits[0].Remote {
		t.Fatalf("waits %+v of %+v", waits, all)
	}
	rounds := below(all, waits[0].Own, event.TransferSpan)
	if len(rounds) != 1 || rounds[0].Outcome != "satisfied" || rounds[0].Trigger != "reactive" || rounds[0].Tokens != 50 {
		t.Fatalf("rounds %+v of %+v", rounds, all)
	}
	gives := below(all, rounds[0].Own, event.GiveSpan)
	if len(gives) != 2 {
		t.Fatalf("gives %+v of %+v", gives, all)
	}
	var got core.Tokens
	for _, g := range gives {
		receives := below(all, g.Own, event.ReceiveSpan)
		if !g.Remote || g.Peer != "a" || g.Ended != 0 || len(receives) != 1 || receives[0].Granted != g.Granted || receives[0].Peer == "a" {
			t.Errorf("give %+v, received as %+v", g, receives)
		}
		got += g.Granted
	}
	if got != 50 || len(all) != 6 {
		t.Errorf("%d tokens given, want 50; spans %+v", got, all)
	}
}

// TestSpansOfAnInstance: each step of an instance at another site is below the instance.
func TestSpansOfAnInstance(t *testing.T) {
	for _, protocol := range []string{"majority", "star"} {
		r := newRig(t, 3, tracing("instance", protocol))
		r.create("acme/vm", 300)
		call := r.traced("a", "acme/vm", 150, 5000)
		r.advance(1000)
		r.wantCode(r.answer(call), answer.OK)
		all := r.spans()
		waits := below(all, &spanOf, event.WaitSpan)
		if len(waits) != 1 {
			t.Fatalf("%s: waits %+v of %+v", protocol, waits, all)
		}
		rounds := below(all, waits[0].Own, event.InstanceSpan)
		if len(rounds) != 1 || rounds[0].Outcome != "applied" {
			t.Fatalf("%s: rounds %+v of %+v", protocol, rounds, all)
		}
		steps := []string{event.PromiseSpan, event.AcceptSpan, event.ApplySpan}
		if protocol == "star" {
			steps = steps[:2] // the leader has ended the instance before it tells the others
		}
		for _, step := range steps {
			if n := len(below(all, rounds[0].Own, step)); n < 1 || n > 2 {
				t.Errorf("%s: %d of %s, want 1 or 2", protocol, n, step)
			}
		}
	}
}

// TestUntracedSitesHandTracesOn: a donor that records no spans tells none, and the spans of the
// asking site are right below each other.
func TestUntracedSitesHandTracesOn(t *testing.T) {
	r := newRig(t, 2, func(c *core.Config) {
		tracing("transfer", "auto")(c)
		c.Traces = c.Self == "a"
	})
	r.create("acme/vm", 200)
	call := r.traced("a", "acme/vm", 150, 5000)
	r.advance(1000)
	r.wantCode(r.answer(call), answer.OK)
	all := r.spans()
	waits := below(all, &spanOf, event.WaitSpan)
	if len(waits) != 1 {
		t.Fatalf("waits %+v", waits)
	}
	rounds := below(all, waits[0].Own, event.TransferSpan)
	if len(rounds) != 1 || len(below(all, rounds[0].Own, event.ReceiveSpan)) != 1 || len(all) != 3 {
		t.Errorf("spans %+v", all)
	}
}

// TestWithoutTraces: without a recorded trace no message carries one, and no span is told. A
// refused acquire has a wait that says so.
func TestWithoutTraces(t *testing.T) {
	r := newRig(t, 3, tracing("transfer", "auto"))
	r.create("acme/vm", 300)
	call := r.acquireAsync("a", "acme/vm", 150, "untraced", 5000)
	r.advance(1000)
	r.wantCode(r.answer(call), answer.OK)
	for _, e := range r.sent {
		if e.Trace != nil {
			t.Errorf("%+v carries a trace", e)
		}
	}
	if all := r.spans(); len(all) > 0 {
		t.Errorf("spans %+v", all)
	}
	call = r.traced("a", "acme/vm", 300, 500)
	r.advance(2000)
	if a := r.answer(call); a.Code == answer.OK {
		t.Fatal("granted")
	}
	if waits := below(r.spans(), &spanOf, event.WaitSpan); len(waits) > 1 || len(waits) == 1 && waits[0].Outcome != "refused" {
		t.Errorf("waits %+v", waits)
	}
}
