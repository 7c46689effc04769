package core

import (
	"encoding/json"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// limitSnapshot is what a site that missed instances of an entity is told
// besides its own grants.
type limitSnapshot struct {
	Limit   Tokens        `json:"limit"`
	Version uint64        `json:"version"`
	Surplus Tokens        `json:"surplus,omitempty"`
	Results []LimitResult `json:"results,omitempty"`
}

// Snapshot implements avantan.Ledger.
func (l *entityLedger) Snapshot(avantan.Instance) []byte {
	b, err := json.Marshal(limitSnapshot{Limit: l.e.limit, Version: l.e.version, Surplus: l.e.surplus, Results: l.e.results})
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	return b
}

// Install implements avantan.Ledger.
func (l *entityLedger) Install(_ avantan.Instance, snapshot []byte) error {
	var s limitSnapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("decoding a snapshot of entity %q: %w", l.e.name, err)
	}
	l.e.limit, l.e.version, l.e.results = s.Limit, s.Version, s.Results
	l.c.keepOut(l.e, s.Surplus)
	if l.c.applied == nil {
		l.c.applied = new(settled)
	}
	l.c.dirtyRecord(l.e)
	return nil
}
