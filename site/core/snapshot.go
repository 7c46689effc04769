package core

import (
	"encoding/json"
	"fmt"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/stored"
)

// limitSnapshot is for a site that missed instances of an entity, in addition to its
// grants.
type limitSnapshot struct {
	Limit   Tokens `json:"limit"`
	Version uint64 `json:"version"`
	Surplus Tokens `json:"surplus,omitempty"`
	// WrittenOff is as in stored.Entity.
	WrittenOff Tokens `json:"written_off,omitempty"`
	// Debt is the entity's debt, DebtSince the instance that last raised it; DebtHeard
	// are the members that go by it.
	Debt      Tokens               `json:"debt,omitempty"`
	DebtSince avantan.Instance     `json:"debt_since,omitempty"`
	DebtHeard []SiteID             `json:"debt_heard,omitempty"`
	Results   []stored.LimitResult `json:"results,omitempty"`
	// Voters is the version of the view; 0 is the founders'.
	Voters uint16 `json:"voters,omitempty"`
	// Appraised is as in stored.Entity.
	Appraised uint16 `json:"appraised,omitempty"`
	// Returned and Rescued are as in stored.Entity.
	Returned uint16   `json:"returned,omitempty"`
	Rescued  []SiteID `json:"rescued,omitempty"`
}

// Snapshot implements avantan.Ledger.
func (l *entityLedger) Snapshot(avantan.Instance) []byte {
	s := limitSnapshot{Limit: l.e.limit, Version: l.e.version, Surplus: l.e.surplus(), WrittenOff: l.e.writtenOff(), Results: l.e.limitResults(), Appraised: l.e.appraised}
	s.Returned, s.Rescued = settledOf(l.e)
	if l.e.voters > 1 {
		s.Voters = l.e.voters
	}
	if d := l.e.debt(); d != nil {
		s.Debt, s.DebtSince, s.DebtHeard = d.amount, d.since, l.c.heardBy(d)
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	return b
}

// Install implements avantan.Ledger.
func (l *entityLedger) Install(t avantan.Instance, snapshot []byte) error {
	var s limitSnapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("decoding a snapshot of entity %q: %w", l.e.name, err)
	}
	voters := max(1, s.Voters)
	if l.c.roster.view(voters) == nil {
		return fmt.Errorf("a snapshot of entity %q: version %d: %w", l.e.name, voters, errView)
	}
	if s.Version != l.e.version {
		l.c.limiting.limitChanged(l.e, t)
	}
	l.e.limit, l.e.version = s.Limit, s.Version
	l.e.setLimitResults(s.Results)
	l.c.keepOut(l.e, s.Surplus)
	l.c.retire(l.e, s.WrittenOff)
	l.c.limiting.knowDebt(l.e, s.Debt, s.DebtSince, s.DebtHeard)
	if l.c.applied == nil {
		l.c.applied = new(settled)
	}
	// An older version forgets results by count.
	l.c.applied.gap = len(s.Results) >= legacyResults && s.Results[0].Keep == 0
	l.e.appraised = s.Appraised
	setSettled(l.e, s.Returned, s.Rescued)
	l.c.setVoters(l.e, voters)
	l.c.dirtyRecord(l.e)
	return nil
}
