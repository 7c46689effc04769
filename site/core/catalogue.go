package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

// cataloguing decides with the other sites which entities exist, where in the hierarchy,
// and in which mode the sites are.
type cataloguing struct {
	*common
	*peering
	*forecasting
	*reading
	*sharding
	*leasing
	*admitting
	*limiting
	cat catalogue
}

// catalogue is the sequence that decides which entities exist, and the mode. Its
// values are lists of changes; no tokens move in it.
type catalogue struct {
	c        *cataloguing
	protocol *avantan.Machine
	// generation is the last generation given out.
	generation uint64
	// numbered is the number of changes decided so far.
	numbered uint64
	// changes are the last decided changes.
	changes changeResults
	// clock is the latest Asked of all changes decided.
	clock int64
	// version is the version of the cluster; 0 before the first change.
	version versions.Version
	// speak are the versions that other members told last.
	speak map[SiteID]versions.Range
	// gap says that a snapshot installed in this step has no results by time: some may
	// have been forgotten.
	gap bool
	// asks paces the asks to other members and the answers to them.
	asks asks
	// pending are the changes asked for at this site.
	pending []*pendingChange
	applied bool
	// shifted are the entities with books or queues moved by changes applied in this
	// step. reshapes says that waiting acquires of some must be looked at.
	shifted  []*entity
	reshapes bool
	// admits says that it is time to look for a site to admit.
	admits bool
	// heard is the last instance that each other site has told to have applied.
	heard map[SiteID]avantan.Instance

	dirty bool
	// nextSync is the next time to tell the other sites how far this site is.
	nextSync Tick
	// told is the last entity with a limit told to the others; empty to start with the
	// first.
	told string
	wake Tick
}

// proposeChanges begins an instance if changes wait and none is under way.
func (c *cataloguing) proposeChanges() {
	withdraw := overdue(c.cat.pending, c.cat.protocol)
	if !withdraw && (firstDue(c.cat.pending) == nil || c.cat.protocol.Open() || c.cat.protocol.Waits()) {
		return
	}
	notProposed(c.cat.pending)
	var changes []stored.CatalogueChange
	for _, p := range c.cat.pending {
		if !p.late && len(changes) < c.cfg.MaxBatch {
			if p.catalogue.Begin = 0; len(changes) == 0 {
				p.catalogue.Begin = c.begin()
			}
			changes = append(changes, p.catalogue)
			p.proposed = true
		}
	}
	encoded, err := json.Marshal(changes)
	if err != nil {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ProtocolFault, Err: fmt.Errorf("encoding changes: %w", err)})
		return
	}
	c.stepCatalogue(avantan.Input{Begin: &avantan.Proposal{Change: encoded}})
}

func (c *cataloguing) stepCatalogue(in avantan.Input) {
	cat := &c.cat
	if in.Receive != nil && c.answeredLately(in.Receive) {
		return
	}
	cat.applied, cat.gap = false, false
	out := cat.protocol.Step(c.now.Tick, in)
	cat.dirty = cat.dirty || out.Persist
	c.send("", 0, c.paced(out.Messages))
	c.protocolEvents("", &out)
	if cat.protocol.State().Built {
		for _, p := range cat.pending {
			p.built = p.built || p.proposed
		}
	}
	if out.Failed != avantan.FailedNot {
		notProposed(cat.pending)
	}
	applied := cat.applied
	if applied {
		c.reshaped()
		cat.answerPending()
	}
	// A site alone decides an instance as it begins it.
	if in.Begin == nil || applied {
		c.proposeChanges()
	}
	c.scheduleCatalogue()
}

// answerPending answers the decided changes.
func (cat *catalogue) answerPending() {
	cat.pending = slices.DeleteFunc(cat.pending, func(p *pendingChange) bool {
		p.proposed = false
		r, ok := cat.result(p.requestID)
		if ok && r.Outcome == answer.OK && r.Change.Kind == input.CreateEntity {
			cat.c.createdWithout(r.Change.Name)
		}
		if ok {
			cat.c.answerAll(p, cat.answer(r, p.body))
		}
		return ok || cat.c.undecided(p, cat.clock, cat.gap)
	})
}

func (cat *catalogue) answer(r stored.Change, body uint64) answer.Answer {
	if r.Change.Body != body {
		return answer.Answer{Code: answer.Reused}
	}
	if r.Change.Kind == input.RaiseVersion {
		return answer.Answer{Code: r.Outcome, Details: &answer.Details{Version: versions.Version(r.Generation)}}
	}
	if r.Change.Kind == input.SetMode {
		decided := answer.DecidedMode{Version: r.Generation}
		if r.Outcome == answer.OK {
			decided.Protocol = r.Change.Mode
		}
		return answer.Answer{Code: r.Outcome, Details: &answer.Details{Mode: answer.Mode{Decided: decided, Configured: cat.c.cfg.Protocol}}}
	}
	v := answer.View{Name: r.Change.Name, Limit: r.Change.Limit, Generation: r.Generation, Version: 1}
	if e := cat.c.space.find(r.Change.Name); r.Change.Kind == input.MoveEntity && e != nil && e.generation == r.Generation {
		v = e.view()
	}
	if v.Parent = r.Change.Parent; r.Change.Kind == input.CreateEntity {
		v.Rate = r.Change.Rate
	}
	details := &answer.Details{View: v}
	if r.Outcome == answer.Changing {
		details.Members = cat.c.handOvers()
	}
	return answer.Answer{Code: r.Outcome, Details: details}
}

// settle carries out a decided change. It is deterministic: every site settles the same
// changes in the same order.
func (cat *catalogue) settle(t avantan.Instance, ch stored.CatalogueChange) {
	if _, repeated := cat.result(ch.RequestID); repeated || ch.Dead(cat.clock) {
		return
	}
	cat.settleBegin(&ch)
	cat.numbered++
	r := stored.Change{Instance: t, Change: ch, Number: cat.numbered}
	c := cat.c
	e := c.space.find(ch.Name)
	switch {
	case ch.Kind == input.SetMode:
		r.Outcome, r.Generation = cat.settleMode(&ch)
	case ch.Kind.OfSites():
		r.Outcome, r.Generation = cat.settleSite(t, &ch)
	case ch.Kind == input.RaiseVersion:
		r.Outcome, r.Generation = cat.settleVersion(&ch)
	case ch.Kind == input.CreateEntity && e != nil:
		r.Outcome, r.Generation = answer.Exists, e.generation
	case ch.Kind == input.CreateEntity:
		r.Outcome, r.Generation = cat.settleCreation(&ch)
	case e == nil:
		r.Outcome = answer.NotFound
	case ch.Generation != 0 && ch.Generation != e.generation:
		r.Outcome, r.Generation = answer.Mismatch, e.generation
	case ch.Kind == input.MoveEntity:
		r.Outcome, r.Generation = cat.settleMove(e, &ch), e.generation
	default:
		r.Outcome, r.Generation = cat.settleDeletion(e, &ch), e.generation
	}
	cat.note(r)
	c.out.Records.Changes = append(c.out.Records.Changes, r)
}

// note keeps a decided change. Beyond KeepChanges it forgets the oldest changes, unless
// their results still count.
func (cat *catalogue) note(r stored.Change) {
	cat.changes.add(&r)
	cat.clock = max(cat.clock, r.Change.Asked)
	over, oldest := 0, cat.changes.at(0)
	for cat.changes.len()-over > cat.c.cfg.KeepChanges && !cat.lasts(&oldest) {
		over++
		oldest = cat.changes.at(over)
	}
	if over > 0 {
		cat.changes.forgetOldest(over)
		cat.c.out.Records.ForgetChanges = oldest.Number
	}
}

// Pledge implements avantan.Ledger: the catalogue moves no tokens.
func (cat *catalogue) Pledge(avantan.Instance, avantan.Press) (avantan.Contribution, bool) {
	return avantan.Contribution{}, false
}

// TakeBack implements avantan.Ledger; there is never anything to take back.
func (cat *catalogue) TakeBack(avantan.Instance, avantan.Contribution) {}

// Forfeit implements avantan.Ledger; there is never anything to give up.
func (cat *catalogue) Forfeit(avantan.Instance, avantan.Contribution) {}

func decodeChanges(v *avantan.Value) ([]stored.CatalogueChange, error) {
	if len(v.Change) == 0 {
		return nil, nil
	}
	var changes []stored.CatalogueChange
	if err := json.Unmarshal(v.Change, &changes); err != nil {
		return nil, fmt.Errorf("decoding changes of the catalogue: %w", err)
	}
	for i := range changes {
		if err := validateChange(&changes[i]); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func validateChange(ch *stored.CatalogueChange) error {
	if ch.Heir != "" && ch.Kind != input.DrainSite {
		return fmt.Errorf("change %q of %q: it has an heir", ch.Kind, ch.Name)
	}
	good := ch.RequestID != "" && ch.Limit >= 0 && ch.Limit <= input.MaxTokens && (ch.Version != 0) == (ch.Kind == input.RaiseVersion)
	good = good && (ch.Rate.None() || ch.Kind == input.CreateEntity && ch.Rate.Validate() == nil)
	switch ch.Kind {
	case input.CreateEntity, input.MoveEntity:
		good = good && ch.Name != "" && ch.Mode == "" && !ch.Subtree
	case input.DeleteEntity:
		good = good && ch.Name != "" && ch.Mode == "" && ch.Parent == ""
	case input.AddSite, input.AdmitSite, input.DrainSite, input.KeepSite, input.SettleSite, input.RetireSite, input.RemoveSite, input.LoseSite, input.RescueSite:
		good = good && ch.Name != "" && ch.Mode == "" && ch.Parent == "" && !ch.Subtree && ch.Limit == 0
	case input.SetMode:
		_, err := policy.ProtocolNamed(ch.Mode)
		good = good && err == nil && ch.Name == "" && ch.Parent == "" && !ch.Subtree
	case input.RaiseVersion:
		good = good && ch.Name == "" && ch.Mode == "" && ch.Parent == "" && !ch.Subtree
	default:
		return fmt.Errorf("change of unknown kind %q", ch.Kind)
	}
	if !good {
		return fmt.Errorf("change %q of %q: out of range", ch.Kind, ch.Name)
	}
	return nil
}

// CanApply implements avantan.Ledger.
func (cat *catalogue) CanApply(v *avantan.Value) error {
	changes, err := decodeChanges(v)
	if err == nil {
		err = cat.c.speaksAll(changes)
	}
	return err
}

// Apply implements avantan.Ledger.
func (cat *catalogue) Apply(t avantan.Instance, v *avantan.Value) {
	changes, err := decodeChanges(v)
	if err != nil {
		panic(fmt.Sprintf("core: catalogue, instance %d: applying what CanApply found good: %v", t, err))
	}
	for _, ch := range changes {
		cat.settle(t, ch)
	}
	cat.applied, cat.dirty = true, true
}

func (c *cataloguing) scheduleCatalogue() {
	if c.cat.nextSync == 0 {
		c.cat.nextSync = c.now.Tick + 1 + Tick(c.cfg.Rand.Uint64N(uint64(c.cfg.Sync)))
	}
	c.cat.wake = earlier(wakeOf(c.cat.protocol), earlier(firstUntil(c.cat.pending), c.cat.nextSync))
}

func (c *cataloguing) wakeCatalogue() {
	cat := &c.cat
	cat.pending = c.expireChanges(cat.pending, cat.protocol)
	if cat.nextSync <= c.now.Tick {
		cat.nextSync = c.now.Tick + c.cfg.Sync
		for m := range c.roster.peers() {
			c.tellCatalogue(m)
		}
		c.tellLimits()
		c.cat.admits = true
	}
	if at, ok := cat.protocol.WakeAt(); ok && at <= c.now.Tick {
		c.stepCatalogue(avantan.Input{})
		return
	}
	c.proposeChanges()
	c.scheduleCatalogue()
}

// askCatalogue asks a site for the decisions of the catalogue missed here.
func (c *cataloguing) askCatalogue(from SiteID) {
	c.stepCatalogue(avantan.Input{Refresh: from})
}
