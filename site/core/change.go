package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// pendingChange is an administrative change asked for at this site and not yet decided.
type pendingChange struct {
	requestID string
	body      uint64
	until     Tick
	// times bound the change's life; dies is its end in this site's ticks.
	times ChangeTimes
	dies  Tick
	// encoded is the change as proposed in an entity's own sequence.
	encoded []byte
	// catalogue is the change as proposed in the catalogue's sequence.
	catalogue CatalogueChange
	// proposed is set while the protocol may hold the change, built once it may be part
	// of a value: the sites may then decide it whatever happens here.
	proposed, built bool
	// late is set once its time is up; it is not proposed any more.
	late    bool
	callers []changeCaller
}

// changeCaller waits for the answer to a change.
type changeCaller struct {
	call Call
	// until is the time at which the caller wants an answer. applied says that the caller
	// waits for all members to apply the change.
	until   Tick
	applied bool
}

// answerAll answers all callers that wait for a change.
func (c *Core) answerAll(p *pendingChange, a Answer) {
	for _, caller := range p.callers {
		c.reply(caller.call, a)
	}
}

// changeBody is a hash of everything that must be the same in a repeat of a change. It is
// stored. A change has only a name or a mode.
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

// valid reports whether a change has the fields of its kind.
func (ch *Change) valid() bool {
	_, known := protocols[ch.Mode]
	return ch.Limit >= 0 && ch.Limit <= MaxTokens && ch.RequestID != "" && known == (ch.Kind == SetMode) &&
		(ch.Parent == "" || ch.Kind == CreateEntity || ch.Kind == MoveEntity) && (!ch.Subtree || ch.Kind == DeleteEntity) &&
		(!ch.Applied || ch.Kind == SetLimit)
}

func (c *Core) change(ch *Change) {
	if !ch.valid() {
		c.reply(ch.Call, Answer{Code: Invalid})
		return
	}
	body, until := changeBody(ch), c.now.Tick+ch.Wait
	p := &pendingChange{
		requestID: ch.RequestID, body: body, until: until, callers: []changeCaller{{ch.Call, until, ch.Applied}},
	}
	if ch.Kind == SetLimit {
		c.changeLimit(ch, p)
		return
	}
	if r, ok := c.cat.result(ch.RequestID); ok {
		c.reply(ch.Call, c.cat.answer(r, body))
		return
	}
	if joinPending(c, c.cat.pending, p) {
		return
	}
	times, code := c.changeTimes(ch, c.cat.clock)
	if code != OK {
		c.reply(ch.Call, Answer{Code: code})
		return
	}
	if wait := c.cat.full(times.Asked); wait > 0 {
		c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: Tick(wait)})
		return
	}
	p.times = times
	c.limitUntil(p, c.cat.clock)
	full := ch.Kind == CreateEntity && c.space.len()+len(c.cat.pending) >= c.cfg.MaxEntities
	if full || len(c.cat.pending) >= c.cfg.MaxChanges {
		c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: 1000})
		return
	}
	p.catalogue = CatalogueChange{
		Kind: ch.Kind, Name: ch.Name, Limit: ch.Limit, Mode: ch.Mode, Generation: ch.Expected,
		Parent: ch.Parent, Subtree: ch.Subtree, RequestID: ch.RequestID, Body: body, ChangeTimes: times,
	}
	c.pin(&p.catalogue)
	c.cat.pending = append(c.cat.pending, p)
	c.pursueCatalogue()
	c.scheduleCatalogue()
}

// pin makes a deletion or move without a generation refer to the entity that this site
// knows. However late the change is decided, it does not hit a later entity of the same
// name.
func (c *Core) pin(ch *CatalogueChange) {
	if ch.Generation != 0 || ch.Kind != DeleteEntity && ch.Kind != MoveEntity {
		return
	}
	if e := c.space.find(ch.Name); e != nil {
		ch.Generation = e.generation
	}
}

// joinPending lets a repeat of a pending change wait with the first caller.
func joinPending(c *Core, pending []*pendingChange, p *pendingChange) bool {
	i := slices.IndexFunc(pending, func(q *pendingChange) bool { return q.requestID == p.requestID })
	if i < 0 {
		return false
	}
	switch q := pending[i]; {
	case q.body != p.body:
		c.answerAll(p, Answer{Code: Reused})
	case len(q.callers) >= MaxCallers:
		// Not Overloaded: the change may be decided.
		c.answerAll(p, Answer{Code: Unknown})
	default:
		q.callers = append(q.callers, p.callers...)
		if until := min(p.until, q.dies); until > q.until {
			q.until, q.late = until, false
		}
	}
	return true
}

// expireChanges answers the changes that are late; protocol is nil before the first
// instance. A change that the protocol may still build into a value gets the time of a
// first phase more. The answer can then mostly be that nothing was done.
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
		c.answerAll(p, Answer{Code: code, RetryAfter: 1000})
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

// overdue reports whether the protocol holds, for the time after a back-off, a change
// whose time is up. Begun anew, the instance will be without the change.
func overdue(pending []*pendingChange, protocol *avantan.Machine) bool {
	return protocol.Waits() && !protocol.Open() &&
		slices.ContainsFunc(pending, func(p *pendingChange) bool { return p.late && p.proposed })
}

func notProposed(pending []*pendingChange) {
	for _, p := range pending {
		p.proposed = false
	}
}

// limitChange is a change of an entity's limit as its sequence decides it. If Surplus is
// not 0, it sets Surplus tokens aside and leaves the limit as it is.
type limitChange struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	Limit     Tokens `json:"limit"`
	Expected  uint64 `json:"expected,omitempty"`
	Surplus   Tokens `json:"surplus,omitempty"`
	ChangeTimes
}

// LimitResult is the outcome of a decided limit change, kept so that a repeat of its
// request id gets the same answer at every site.
type LimitResult struct {
	RequestID string `json:"request_id"`
	Body      uint64 `json:"body"`
	// Outcome is OK or Mismatch.
	Outcome Code `json:"outcome"`
	// Limit and Version are the entity's values after the change.
	Limit   Tokens `json:"limit"`
	Version uint64 `json:"version"`
	// Asked and Keep are as in ChangeTimes.
	Asked int64 `json:"asked,omitempty"`
	Keep  int64 `json:"keep,omitempty"`
	// setAside is the number of tokens that the change sets aside.
	setAside Tokens
	// void says that the change does nothing: its request id was decided before, or its
	// time was over.
	void bool
}

// delta is the change of the entity's tokens in circulation.
func (r *LimitResult) delta(e *entity) Tokens {
	if r.void {
		return 0
	}
	return r.Limit - e.limit - r.setAside
}

// judge works out the effect of a limit change on the present entity.
func (e *entity) judge(encoded []byte) (LimitResult, error) {
	var ch limitChange
	if err := json.Unmarshal(encoded, &ch); err != nil {
		return LimitResult{}, fmt.Errorf("decoding a limit change: %w", err)
	}
	if ch.Limit < 0 || ch.Limit > MaxTokens || ch.Surplus < 0 || ch.Surplus > MaxTokens {
		return LimitResult{}, fmt.Errorf("limit change to %d, surplus %d: out of range", ch.Limit, ch.Surplus)
	}
	r := LimitResult{
		RequestID: ch.RequestID, Body: ch.Body, Limit: e.limit, Version: e.version, Asked: ch.Asked, Keep: ch.Keep,
	}
	switch {
	case e.result(ch.RequestID) != nil, ch.dead(e.clock()):
		r.void = true
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
	if r.void {
		return
	}
	e.limit, e.version = r.Limit, r.Version
	// Only the answer to a repeat is remembered.
	r.setAside = 0
	e.setLimitResults(append(e.limitResults(), r))
	e.forgetResults()
}

func (c *Core) changeLimit(ch *Change, p *pendingChange) {
	c.space.Execute([]string{ch.Name}, func(es []*entity) {
		e := es[0]
		if e == nil {
			c.reply(ch.Call, Answer{Code: NotFound})
			return
		}
		if c.answerLimit(e, p) {
			c.askApplied(e)
			c.schedule(e)
			return
		}
		if joinPending(c, e.limitChanges(), p) {
			return
		}
		if len(e.limitChanges()) >= c.cfg.MaxChanges {
			c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: 1000})
			return
		}
		times, code := c.changeTimes(ch, e.clock())
		if code != OK {
			c.reply(ch.Call, Answer{Code: code})
			return
		}
		if wait := c.resultsFull(e, times.Asked); wait > 0 {
			c.reply(ch.Call, Answer{Code: Overloaded, RetryAfter: Tick(wait)})
			return
		}
		p.times = times
		c.limitUntil(p, e.clock())
		encoded, err := json.Marshal(limitChange{
			RequestID: ch.RequestID, Body: p.body, Limit: ch.Limit, Expected: ch.Expected, ChangeTimes: times,
		})
		if err != nil {
			c.reply(ch.Call, Answer{Code: Invalid})
			return
		}
		p.encoded = encoded
		e.setLimitChanges(append(e.limitChanges(), p))
		c.check(e)
	})
}

// answerLimit answers a limit change with a decided request id, and reports whether it
// was decided. Callers waiting for all members to apply the change are answered once they
// have.
func (c *Core) answerLimit(e *entity, p *pendingChange) bool {
	r := e.result(p.requestID)
	switch {
	case r == nil:
		return false
	case r.Body != p.body:
		c.answerAll(p, Answer{Code: Reused})
		return true
	}
	for _, caller := range p.callers {
		c.decidedLimit(e, caller, r)
	}
	return true
}

// answerChanges answers the decided limit changes, after instances of the entity's
// sequence were applied: no proposal of this site outlives these instances. gap says that
// results may have been forgotten before this site heard of them.
func (c *Core) answerChanges(e *entity, gap bool) {
	clock := e.clock()
	e.setLimitChanges(slices.DeleteFunc(e.limitChanges(), func(p *pendingChange) bool {
		return c.answerLimit(e, p) || c.undecided(p, clock, gap)
	}))
	notProposed(e.limitChanges())
}
