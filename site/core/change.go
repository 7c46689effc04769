package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// pendingChange is an administrative change asked for at this site and not yet
// decided.
type pendingChange struct {
	requestID string
	body      uint64
	until     Tick
	// encoded is the change as proposed in an entity's own sequence.
	encoded []byte
	// catalogue is the change as proposed in the catalogue's sequence.
	catalogue CatalogueChange
	// proposed is set while the protocol may hold it, built once it may have
	// become part of a value: it may then be decided whatever happens here.
	proposed, built bool
	// late is set once its time is up. It is not proposed any more.
	late  bool
	calls []Call
}

// changeBody is what must be the same in a repeat of a change. It is stored: of
// name and mode a change has one.
func changeBody(ch *Change) uint64 {
	h := bodyHash(RequestKind(0), string(ch.Kind)+"\x00"+ch.Name+ch.Mode, ch.Limit) ^ ch.Expected*0x9e3779b97f4a7c15
	if ch.Parent != "" {
		h = mixBody(h, textHash(ch.Parent))
	}
	if ch.Subtree {
		h = mixBody(h, 1)
	}
	return h
}

// valid reports whether a change says what its kind takes.
func (ch *Change) valid() bool {
	_, known := protocols[ch.Mode]
	return ch.Limit >= 0 && ch.Limit <= MaxTokens && ch.RequestID != "" && known == (ch.Kind == SetMode) &&
		(ch.Parent == "" || ch.Kind == CreateEntity || ch.Kind == MoveEntity) && (!ch.Subtree || ch.Kind == DeleteEntity)
}

func (c *Core) change(ch *Change) {
	if !ch.valid() {
		c.reply(ch.Call, Answer{Code: Invalid})
		return
	}
	body := changeBody(ch)
	p := &pendingChange{
		requestID: ch.RequestID, body: body, until: c.now.Tick + ch.Wait, calls: []Call{ch.Call},
	}
	if ch.Kind == SetLimit {
		c.changeLimit(ch, p)
		return
	}
	if r, ok := c.cat.results[ch.RequestID]; ok {
		c.reply(ch.Call, c.cat.answer(r, body))
		return
	}
	if joinPending(c, c.cat.pending, p) {
		return
	}
	full := ch.Kind == CreateEntity && c.space.len()+len(c.cat.pending) >= c.cfg.MaxEntities
	if full || len(c.cat.pending) >= c.cfg.MaxChanges {
		c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: 1000})
		return
	}
	p.catalogue = CatalogueChange{
		Kind: ch.Kind, Name: ch.Name, Limit: ch.Limit, Mode: ch.Mode, Generation: ch.Expected,
		Parent: ch.Parent, Subtree: ch.Subtree, RequestID: ch.RequestID, Body: body,
	}
	c.cat.pending = append(c.cat.pending, p)
	c.pursueCatalogue()
	c.scheduleCatalogue()
}

// joinPending lets a repeat of a pending change wait with the first caller.
func joinPending(c *Core, pending []*pendingChange, p *pendingChange) bool {
	i := slices.IndexFunc(pending, func(q *pendingChange) bool { return q.requestID == p.requestID })
	if i < 0 {
		return false
	}
	switch q := pending[i]; {
	case q.body != p.body:
		c.reply(p.calls[0], Answer{Code: Reused})
	case len(q.calls) >= maxCallers:
		c.reply(p.calls[0], Answer{Code: Overloaded, RetryAfter: 1000})
	default:
		q.calls = append(q.calls, p.calls...)
		if p.until > q.until {
			q.until, q.late = p.until, false
		}
	}
	return true
}

// expireChanges answers the changes whose time is up; protocol is nil if there
// has been no instance. One that the protocol may
// still build a value with gets as long as a first phase takes, so that it can
// mostly be said that nothing was done.
func (c *Core) expireChanges(pending []*pendingChange, protocol *avantan.Machine) []*pendingChange {
	return slices.DeleteFunc(pending, func(p *pendingChange) bool {
		if p.until > c.now.Tick {
			return false
		}
		held := p.proposed && protocol != nil && (protocol.Open() || protocol.Waits())
		if held && !p.built && !p.late {
			p.late, p.until = true, c.now.Tick+c.cfg.Window+1
			return false
		}
		code := NoQuorum
		if p.built || held {
			code = Unknown
		}
		for _, call := range p.calls {
			c.reply(call, Answer{Code: code, RetryAfter: 1000})
		}
		return true
	})
}

// firstDue returns the first change that may be proposed, or nil.
func firstDue(pending []*pendingChange) *pendingChange {
	i := slices.IndexFunc(pending, func(p *pendingChange) bool { return !p.late })
	if i < 0 {
		return nil
	}
	return pending[i]
}

// overdue reports whether the protocol holds a change, for the time after a
// back-off, whose time is up. Begun anew, the instance will be without it.
func overdue(pending []*pendingChange, protocol *avantan.Machine) bool {
	return protocol.Waits() && !protocol.Open() &&
		slices.ContainsFunc(pending, func(p *pendingChange) bool { return p.late && p.proposed })
}

func notProposed(pending []*pendingChange) {
	for _, p := range pending {
		p.proposed = false
	}
}

// limitChange is a change of an entity's limit as its sequence decides it, or, if
// Surplus is not 0, one that sets that much aside and leaves the limit as it is.
type limitChange struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	Limit     Tokens `json:"limit"`
	Expected  uint64 `json:"expected,omitempty"`
	Surplus   Tokens `json:"surplus,omitempty"`
}

// LimitResult is the outcome of a decided limit change, kept so that a repeat
// of its request id gets the same answer at every site.
type LimitResult struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	// Outcome is OK, Mismatch or Reused.
	Outcome Code `json:"outcome"`
	// Limit and Version are the entity's after the change.
	Limit   Tokens `json:"limit"`
	Version uint64 `json:"version"`
	// setAside is what the change sets aside.
	setAside Tokens
	// repeated says that the request id was decided before.
	repeated bool
}

// delta is what the change adds to the tokens of an entity in circulation.
func (r *LimitResult) delta(e *entity) Tokens {
	if r.repeated {
		return 0
	}
	return r.Limit - e.limit - r.setAside
}

// keepResults is how many results of limit changes an entity remembers.
const keepResults = 16

// judge says what a limit change would do to the entity as it is.
func (e *entity) judge(encoded []byte) (LimitResult, error) {
	var ch limitChange
	if err := json.Unmarshal(encoded, &ch); err != nil {
		return LimitResult{}, fmt.Errorf("decoding a limit change: %w", err)
	}
	if ch.Limit < 0 || ch.Limit > MaxTokens || ch.Surplus < 0 || ch.Surplus > MaxTokens {
		return LimitResult{}, fmt.Errorf("limit change to %d, surplus %d: out of range", ch.Limit, ch.Surplus)
	}
	r := LimitResult{RequestID: ch.RequestID, Body: ch.Body, Limit: e.limit, Version: e.version}
	switch {
	case slices.ContainsFunc(e.results, func(o LimitResult) bool { return o.RequestID == ch.RequestID }):
		r.repeated = true
	case ch.Expected != 0 && ch.Expected != e.version:
		r.Outcome = Mismatch
	case ch.Surplus > 0:
		r.Version, r.setAside = e.version+1, ch.Surplus
	default:
		r.Limit, r.Version = ch.Limit, e.version+1
	}
	return r, nil
}

func (e *entity) settleLimit(r LimitResult) {
	if r.repeated {
		return
	}
	e.limit, e.version = r.Limit, r.Version
	if len(e.results) >= keepResults {
		e.results = slices.Delete(e.results, 0, len(e.results)-keepResults+1)
	}
	// Only a repeat's answer is remembered.
	r.setAside = 0
	e.results = append(e.results, r)
}

func (c *Core) changeLimit(ch *Change, p *pendingChange) {
	c.space.Execute([]string{ch.Name}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(ch.Call, Answer{Code: NotFound})
			return
		}
		if ans, ok := e.limitAnswer(p); ok {
			c.reply(ch.Call, ans)
			return
		}
		if joinPending(c, e.changes, p) {
			return
		}
		if len(e.changes) >= c.cfg.MaxChanges {
			c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: 1000})
			return
		}
		encoded, err := json.Marshal(limitChange{
			RequestID: ch.RequestID, Body: p.body, Limit: ch.Limit, Expected: ch.Expected,
		})
		if err != nil {
			c.reply(ch.Call, Answer{Code: Invalid})
			return
		}
		p.encoded = encoded
		e.changes = append(e.changes, p)
		c.pursue(e)
		c.schedule(e)
	})
}

// limitAnswer answers a limit change whose request id was decided.
func (e *entity) limitAnswer(p *pendingChange) (Answer, bool) {
	i := slices.IndexFunc(e.results, func(r LimitResult) bool { return r.RequestID == p.requestID })
	if i < 0 {
		return Answer{}, false
	}
	r := e.results[i]
	if r.Body != p.body {
		return Answer{Code: Reused}, true
	}
	v := e.view()
	v.Limit, v.Version = r.Limit, r.Version
	return Answer{Code: r.Outcome, Details: &Details{View: v}}, true
}

// answerChanges answers the limit changes that were decided, after instances of
// the entity's sequence were applied: no proposal of this site outlives those.
func (c *Core) answerChanges(e *entity) {
	e.changes = slices.DeleteFunc(e.changes, func(p *pendingChange) bool {
		ans, decided := e.limitAnswer(p)
		if decided {
			for _, call := range p.calls {
				c.reply(call, ans)
			}
		}
		return decided
	})
	notProposed(e.changes)
}
