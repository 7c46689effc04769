package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
)

// Traces are data that the core hands on. An acquire of a recorded trace has a span. While
// it waits, the redistribution that the site begins for its entity belongs to its trace, and so do the messages that
// begin each step of the redistribution at other sites. The core decides nothing by traces.
// Without them it compares a few pointers with nil.

// round is a redistribution that this site began while an acquire of a recorded trace
// waited.
type round struct {
	own, parent *spanctx.Context
	began       int64
	by          policy.Variant
	trigger     string
	need        Tokens
}

// heard is the work for a message of another site that belongs to a recorded trace.
type heard struct {
	span event.Span
	// from is the other site.
	from SiteID
}

// child returns a new span below another; nil for nil.
func child(c *common, of *spanctx.Context) *spanctx.Context {
	if of == nil {
		return nil
	}
	c.spans++
	return of.Child(textHash(string(c.cfg.Self))^uint64(c.cfg.Run), c.spans)
}

func spanEnded(c *common, s *event.Span) {
	c.out.Events = append(c.out.Events, event.Event{Kind: event.SpanEnded, Entity: s.Entity, Span: s})
}

// waited tells of the waiting of an acquire that has ended.
func waited(c *common, w *waiting, outcome string) {
	if w.span == nil {
		return
	}
	spanEnded(c, &event.Span{
		Name: event.WaitSpan, Own: w.span, Parent: w.trace, Began: w.began, Ended: c.now.Nanos,
		Entity: w.entity, Tokens: w.tokens, Outcome: outcome,
	})
}

// outcomeOf names the outcome of an acquire that waited.
func outcomeOf(a *answer.Answer) string {
	if a.Code == answer.OK {
		return "granted"
	}
	return "refused"
}

// beginRound has a redistribution belong to the trace of an acquire that waits, if any does.
func (c *rebalancing) beginRound(e *entity, m *move) {
	q := e.queue
	if q == nil || q.traced == nil {
		return
	}
	c.endRound(e, "overtaken")
	parent := q.traced.span
	q.round = &round{own: child(c.common, parent), parent: parent, began: c.now.Nanos, by: m.by, trigger: m.reason, need: m.need}
}

// endRound tells of the end of the redistribution that belongs to a trace, if any does.
func (c *rebalancing) endRound(e *entity, outcome string) {
	if e.queue == nil || e.queue.round == nil {
		return
	}
	r := e.queue.round
	e.queue.round = nil
	name := event.InstanceSpan
	if r.by == policy.Direct {
		name = event.TransferSpan
	}
	spanEnded(c.common, &event.Span{
		Name: name, Own: r.own, Parent: r.parent, Began: r.began, Ended: c.now.Nanos,
		Entity: e.name, Tokens: r.need, Trigger: r.trigger, Outcome: outcome,
	})
}

// endOf names the end of a round of direct transfers.
func endOf(r *transfer.Result) string {
	switch {
	case r.Satisfied:
		return "satisfied"
	case r.Got > 0:
		return "transferred in part"
	}
	return "nothing transferred"
}

// traceRound notes the trace of the redistribution in the messages from a number on that
// begin a step of it at another site.
func (c *rebalancing) traceRound(e *entity, from int) {
	if e.queue == nil || e.queue.round == nil {
		return
	}
	for i := from; i < len(c.out.Messages); i++ {
		if env := &c.out.Messages[i]; begins(env) != "" && env.Trace == nil {
			env.Trace = e.queue.round.own
		}
	}
}

// begins names the span of the work that a message begins at its receiver, as a step of a
// redistribution that the sender leads; empty if it begins none.
func begins(env *message.Envelope) string {
	switch {
	case env.Transfer != nil:
		if env.Transfer.Kind == transfer.Ask {
			return event.GiveSpan
		}
		return ""
	case env.Star != nil:
		switch env.Star.Kind {
		case star.Election:
			return event.PromiseSpan
		case star.Accept:
			return event.AcceptSpan
		case star.Commit:
			return event.ApplySpan
		}
		return ""
	}
	switch env.Message.Kind {
	case avantan.Election:
		return event.PromiseSpan
	case avantan.Accept:
		return event.AcceptSpan
	case avantan.Decision:
		return event.ApplySpan
	}
	return ""
}

// hears begins the work for a message.
func hears(c *common, from SiteID, env *message.Envelope) {
	if env.Trace == nil {
		return
	}
	name := begins(env)
	if env.Transfer != nil && (env.Transfer.Kind == transfer.Transfer || env.Transfer.Kind == transfer.Refuse) {
		name = event.ReceiveSpan
	}
	if name == "" {
		return
	}
	h := &heard{from: from, span: event.Span{
		Name: name, Own: env.Trace, Parent: env.Trace, Remote: true, Began: c.now.Nanos, Entity: env.Entity, Peer: from,
	}}
	if c.cfg.Traces {
		h.span.Own = child(c, env.Trace)
	}
	switch t := env.Transfer; {
	case t == nil:
	case t.Kind == transfer.Ask:
		h.span.Tokens, h.span.Outcome = t.Amount, "nothing"
	case t.Kind == transfer.Transfer:
		h.span.Granted, h.span.Outcome = t.Amount, "transferred"
	default:
		h.span.Outcome = "refused"
	}
	c.heard = h
}

// traceAnswer notes the trace in the answer to an ask that belongs to it.
func traceAnswer(c *common, env *message.Envelope) {
	h := c.heard
	if h == nil || h.span.Name != event.GiveSpan || env.Transfer.To != h.from {
		return
	}
	switch env.Transfer.Kind {
	case transfer.Transfer:
		h.span.Granted, h.span.Outcome = env.Transfer.Amount, "transferred"
	case transfer.Refuse:
		h.span.Outcome = "refused"
	default:
		return
	}
	env.Trace = h.span.Own
}

// hasHeard ends the work for a message.
func hasHeard(c *common) {
	h := c.heard
	if h == nil {
		return
	}
	c.heard = nil
	if c.cfg.Traces {
		spanEnded(c, &h.span)
	}
}
