package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

// changeBody is a hash of everything that must be the same in a repeat of a change. It is
// stored. A change has only a name or a mode.
func changeBody(ch *input.Change) uint64 {
	h := bodyHash(stored.RequestKind(0), string(ch.Kind)+"\x00"+ch.Name+ch.Mode, ch.Limit) ^ ch.Expected*0x9e3779b97f4a7c15
	if ch.Parent != "" {
		h = mixBody(h, textHash(ch.Parent))
	}
	if ch.Subtree {
		h = mixBody(h, 1)
	}
	if ch.Incarnation != 0 {
		h = mixBody(h, ch.Incarnation)
	}
	if ch.Version != 0 {
		h = mixBody(h, uint64(ch.Version))
	}
	if ch.Heir != "" {
		h = mixBody(h, textHash(string(ch.Heir)))
	}
	if t := &ch.Rate; !t.None() {
		h = mixBody(mixBody(h, textHash(string(t.Kind)+"\x00"+string(t.Unit)+"\x00"+t.Zone)), uint64(t.Count))
		if t.Volatile {
			h = mixBody(h, 1)
		}
		if t.Keys {
			h = mixBody(h, 2)
		}
	}
	if ch.Kind == input.Reconcile {
		t := &ch.Truth
		for _, n := range []uint64{uint64(t.InUse), uint64(t.Counted), uint64(t.Returning), t.Generation} { //nolint:gosec // only mixed
			h = mixBody(h, n)
		}
	}
	if r := ch.Rescue; r != nil {
		h = mixBody(h, textHash(string(r.Site)))
		for _, n := range []uint64{r.Generation, uint64(r.Net), uint64(r.Held)} { //nolint:gosec // only mixed
			h = mixBody(h, n)
		}
		for _, l := range r.Leased {
			h = mixBody(mixBody(h, uint64(l.Tokens)), uint64(l.Until)) //nolint:gosec // only mixed
		}
	}
	return h
}

// valid reports whether a change has the fields of its kind.
func validRequest(ch *input.Change) bool {
	_, err := policy.ProtocolNamed(ch.Mode)
	if ch.Kind.OfSites() && (ch.Name == "" || ch.Limit != 0) || ch.Heir != "" && ch.Kind != input.DrainSite {
		return false
	}
	return ch.Limit >= 0 && ch.Limit <= input.MaxTokens && ch.RequestID != "" && (err == nil) == (ch.Kind == input.SetMode) &&
		(ch.Parent == "" || ch.Kind == input.CreateEntity || ch.Kind == input.MoveEntity) && (!ch.Subtree || ch.Kind == input.DeleteEntity) &&
		(!ch.Applied || ch.Kind == input.SetLimit || ch.Kind == input.RescueEntity) && (ch.Version != 0) == (ch.Kind == input.RaiseVersion) &&
		(ch.Kind == input.RescueEntity) == (ch.Rescue != nil) && (ch.Rescue == nil || ch.Rescue.Valid() && ch.Expected == 0 && ch.Limit == 0) &&
		(ch.Kind == input.Reconcile || ch.Truth == input.Truth{}) &&
		(ch.Rate.None() || ch.Kind == input.CreateEntity && ch.Rate.Validate() == nil) &&
		(ch.Kind != input.Reconcile || ch.Truth.Valid() && ch.Expected != 0 && ch.Limit == 0)
}

func (c *cataloguing) change(ch *input.Change) {
	if !validRequest(ch) {
		c.reply(ch.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	body, until := changeBody(ch), c.now.Tick+ch.Wait
	p := &pendingChange{
		requestID: ch.RequestID, body: body, until: until, callers: []changeCaller{{ch.Call, until, ch.Applied}},
	}
	if ch.Kind == input.SetLimit || ch.Kind == input.Reconcile || ch.Kind == input.RescueEntity {
		c.limiting.changeLimit(ch, p)
		return
	}
	if c.tooEarly(ch) {
		return
	}
	if r, ok := c.cat.result(ch.RequestID); ok {
		c.reply(ch.Call, c.cat.answer(r, body))
		return
	}
	if joinPending(c.common, c.cat.pending, p) {
		return
	}
	if ch.Kind == input.RaiseVersion && c.answeredRaise(ch) {
		return
	}
	if ch.Kind.OfVoters() && c.roster.behind > 0 || c.unrescued(ch) {
		c.reply(ch.Call, answer.Answer{Code: answer.Changing})
		return
	}
	times, code := c.changeTimes(ch, c.cat.clock)
	if code != answer.OK {
		c.reply(ch.Call, answer.Answer{Code: code})
		return
	}
	if wait := c.cat.full(times.Asked); wait > 0 {
		c.reply(ch.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: Tick(wait)})
		return
	}
	p.times = times
	c.limitUntil(p, c.cat.clock)
	full := ch.Kind == input.CreateEntity && c.space.len()+len(c.cat.pending) >= c.cfg.MaxEntities
	if full || len(c.cat.pending) >= c.cfg.MaxChanges {
		c.reply(ch.Call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
		return
	}
	p.catalogue = stored.CatalogueChange{
		Kind: ch.Kind, Name: ch.Name, Limit: ch.Limit, Mode: ch.Mode, Generation: ch.Expected,
		Version: ch.Version, Parent: ch.Parent, Subtree: ch.Subtree, Incarnation: ch.Incarnation, Heir: ch.Heir, Rate: ch.Rate, RequestID: ch.RequestID, Body: body, ChangeTimes: times,
	}
	c.pin(&p.catalogue)
	c.cat.pending = append(c.cat.pending, p)
	c.proposeChanges()
	c.scheduleCatalogue()
}

// pin makes a deletion or move without a generation refer to the entity that this site
// knows, and a change of the voters to the members that it knows. However late the change
// is decided, it does not hit a later entity of the same name, or other members.
func (c *cataloguing) pin(ch *stored.CatalogueChange) {
	if ch.Generation == 0 && ch.Kind.OfVoters() {
		ch.Generation = uint64(c.roster.Version)
		return
	}
	if ch.Generation != 0 || ch.Kind != input.DeleteEntity && ch.Kind != input.MoveEntity {
		return
	}
	if e := c.space.find(ch.Name); e != nil {
		ch.Generation = e.generation
	}
}
