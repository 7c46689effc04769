package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// catalogueSnapshot is for a site that missed decisions: the changes it missed, or
// everything if they are no longer all kept.
type catalogueSnapshot struct {
	// Missed are the changes since the reader's last instance.
	Missed []stored.Change `json:"missed,omitempty"`
	// Whole is set if Missed would have gaps.
	Whole *catalogueWhole `json:"whole,omitempty"`
	// Founders are the first voters, for a site that may not know them.
	Founders []SiteID `json:"founders,omitempty"`
}

type catalogueWhole struct {
	Generation uint64             `json:"generation"`
	Numbered   uint64             `json:"numbered"`
	Mode       answer.DecidedMode `json:"mode"`
	// Version is as in stored.Catalogue.
	Version  versions.Version `json:"version,omitempty"`
	Entities []createdEntry   `json:"entities"`
	Changes  []stored.Change  `json:"changes"`
	// Roster has version 0 if the founders are the only sites ever.
	Roster stored.Roster `json:"roster,omitzero"`
}

type createdEntry struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
	Limit      Tokens `json:"limit"`
	// Parent is the generation of the entity right above, Shape as in stored.Entity.
	Parent uint64 `json:"parent,omitempty"`
	Shape  uint64 `json:"shape,omitempty"`
	// Born is the version of the roster whose voters share the limit; 0 is the founders'.
	Born uint16 `json:"born,omitempty"`
	// Rate has the terms of a rate quota.
	Rate rates.Terms `json:"rate,omitzero"`
}

// Snapshot implements avantan.Ledger.
func (cat *catalogue) Snapshot(since avantan.Instance) []byte {
	var s catalogueSnapshot
	if since == 0 {
		s.Founders = cat.c.roster.view(1)
	}
	kept := cat.changes.len()
	if cat.numbered == uint64(kept) || (kept > 0 && cat.changes.at(0).Instance <= since) {
		i := sort.Search(kept, func(i int) bool { return cat.changes.at(i).Instance > since })
		s.Missed = slices.Collect(cat.changes.from(i))
	} else {
		s.Whole = cat.whole()
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("core: plain data does not marshal: %v", err))
	}
	return b
}

func (cat *catalogue) whole() *catalogueWhole {
	w := &catalogueWhole{
		Generation: cat.generation, Numbered: cat.numbered, Mode: cat.c.mode, Version: cat.recordedVersion(), Changes: slices.Collect(cat.changes.from(0)),
	}
	w.Roster = cat.c.roster.changed()
	cat.c.space.ascend("", func(e *entity) bool {
		en := createdEntry{Name: e.name, Generation: e.generation, Limit: e.initial, Shape: cat.c.space.shapes[e], Rate: termsOf(e)}
		if e.born > 1 {
			en.Born = e.born
		}
		if e.parent() != nil {
			en.Parent = e.parent().generation
		}
		w.Entities = append(w.Entities, en)
		return true
	})
	return w
}

// Install implements avantan.Ledger.
func (cat *catalogue) Install(_ avantan.Instance, snapshot []byte) error {
	var s catalogueSnapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("decoding a snapshot of the catalogue: %w", err)
	}
	if s.Whole != nil {
		if err := errors.Join(s.Whole.validate(), cat.c.speaksVersion(s.Whole.Version)); err != nil {
			return fmt.Errorf("a snapshot of the catalogue: %w", err)
		}
	}
	for _, r := range s.Missed {
		if err := cat.c.speaksVersion(max(r.Change.Version, r.Change.Begin)); err != nil {
			return fmt.Errorf("a snapshot of the catalogue: %w", err)
		}
	}
	if cat.c.roster.Version == 0 {
		founded := stored.Founded(s.Founders)
		if err := founded.Validate(); err != nil {
			return fmt.Errorf("a snapshot of the catalogue: founders: %w: %w", errView, err)
		}
		cat.c.seat(founded)
	}
	cat.applied, cat.dirty = true, true
	if s.Whole == nil {
		for _, r := range s.Missed {
			cat.settle(r.Instance, r.Change)
		}
		return nil
	}
	cat.replace(s.Whole)
	return nil
}

// replace replaces the catalogue by a snapshot. The books come out as if the missed
// changes had been applied one by one. Each remaining entity keeps the tokens moved here
// on it directly, and they are out of all its ancestors in the new tree.
func (cat *catalogue) replace(w *catalogueWhole) {
	c := cat.c
	if w.Roster.Version > 0 {
		c.seat(w.Roster)
	}
	direct := make(map[*entity]Tokens, c.space.len())
	c.space.ascend("", func(e *entity) bool {
		if rateOf(e) == nil {
			direct[e] = e.books.Net() - c.space.carriedBelow(e)
		}
		return true
	})
	cat.regroup(w)
	out := make(map[*entity]Tokens, c.space.len())
	c.space.ascend("", func(e *entity) bool {
		for a := range allocationsOf(e) {
			out[a] += direct[e]
		}
		return true
	})
	c.space.ascend("", func(e *entity) bool {
		if rateOf(e) == nil && out[e] != e.books.Net() {
			c.shift(e, out[e]-e.books.Net())
		}
		return true
	})
	cat.reshapes = true
	cat.generation, cat.numbered, cat.c.mode = w.Generation, w.Numbered, w.Mode
	cat.setVersion(versionOf(w.Version, w.Numbered))
	cat.changes, cat.clock = newChangeResults(), 0
	// An older version forgets results by count.
	cat.gap = len(w.Changes) >= legacyChanges && w.Changes[0].Change.Keep == 0
	for _, r := range w.Changes {
		cat.note(r)
		c.out.Records.Changes = append(c.out.Records.Changes, r)
	}
	if len(w.Changes) > 0 {
		c.out.Records.ForgetChanges = w.Changes[0].Number
	}
}

// regroup makes the entities and their tree the same as in a snapshot.
func (cat *catalogue) regroup(w *catalogueWhole) {
	c := cat.c
	wanted := make(map[string]*createdEntry, len(w.Entities))
	for i := range w.Entities {
		wanted[w.Entities[i].Name] = &w.Entities[i]
	}
	var gone []*entity
	c.space.ascend("", func(e *entity) bool {
		if en := wanted[e.name]; en == nil || en.Generation != e.generation {
			gone = append(gone, e)
		}
		return true
	})
	for _, e := range gone {
		c.dropEntity(e)
	}
	byGeneration := make(map[uint64]*entity, len(w.Entities))
	for _, en := range w.Entities {
		e := c.space.find(en.Name)
		if e == nil {
			e = c.addEntity(en.Name, en.Generation, en.Limit, max(1, en.Born), en.Rate)
		}
		byGeneration[en.Generation] = e
	}
	// Entities may form a loop until all are in their new places.
	for _, en := range w.Entities {
		e := byGeneration[en.Generation]
		c.relink(e, byGeneration[en.Parent])
		if c.space.shapes[e] != en.Shape {
			c.reshape(e, en.Shape)
		}
	}
}

// validate checks the entities and the mode of a snapshot.
func (w *catalogueWhole) validate() error {
	if err := errors.Join(validMode(w.Mode), w.Roster.Validate()); err != nil {
		return err
	}
	names := make(map[string]bool, len(w.Entities))
	parents := make(map[uint64]uint64, len(w.Entities))
	for _, en := range w.Entities {
		_, twice := parents[en.Generation]
		if twice || names[en.Name] || en.Name == "" || en.Generation == 0 {
			return fmt.Errorf("entity %q, generation %d: it is named twice, or not at all", en.Name, en.Generation)
		}
		if err := en.Rate.Validate(); err != nil {
			return fmt.Errorf("entity %q: %w", en.Name, err)
		}
		names[en.Name], parents[en.Generation] = true, en.Parent
	}
	for _, en := range w.Entities {
		depth := 0
		for g := en.Generation; g != 0; g = parents[g] {
			if _, there := parents[g]; !there {
				return fmt.Errorf("entity %q: generation %d, above it, is missing", en.Name, g)
			}
			if depth++; depth > MaxDepth {
				return fmt.Errorf("entity %q: more than %d stand above it", en.Name, MaxDepth-1)
			}
		}
	}
	return nil
}
