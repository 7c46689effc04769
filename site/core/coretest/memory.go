// Package coretest has a store of records in memory, for tests of code that uses a core;
// package store is the store on a disk. It refuses nothing: it does not know which
// records are valid.
package coretest

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
)

// Memory holds records in maps. Records in it are never changed, only replaced.
type Memory struct {
	Catalogue *stored.Catalogue
	Changes   Series[stored.Change]
	Entities  map[string]stored.Entity
	// Names are the names of the entities, by generation.
	Names  map[uint64]string
	Books  map[string]stored.Books
	Blocks Series[stored.Block]

	Incarnation message.Incarnation
	Commits     message.Commits
	Remembered  map[core.SiteID]stored.Remembered
	Forecasts   map[string]stored.Forecast
	Claims      map[message.ClaimNumber]stored.Claim
	Leases      map[uint64]stored.Lease
	Clock       *stored.Clock
	// Version is the version of the cluster known last; 0 for none.
	Version versions.Version
}

// NewMemory returns an empty store.
func NewMemory(incarnation message.Incarnation) *Memory {
	return &Memory{
		Incarnation: incarnation, Version: versions.Own().Newest, Remembered: make(map[core.SiteID]stored.Remembered),
		Forecasts: make(map[string]stored.Forecast),
		Claims:    make(map[message.ClaimNumber]stored.Claim), Leases: make(map[uint64]stored.Lease),
		Entities: make(map[string]stored.Entity), Names: make(map[uint64]string), Books: make(map[string]stored.Books),
	}
}

// Clone returns a copy of all records.
func (m *Memory) Clone() *Memory {
	c := *m
	c.Changes, c.Entities, c.Names, c.Books = m.Changes.Copied(), maps.Clone(m.Entities), maps.Clone(m.Names), maps.Clone(m.Books)
	c.Blocks, c.Remembered = m.Blocks.Copied(), maps.Clone(m.Remembered)
	c.Forecasts, c.Claims, c.Leases = maps.Clone(m.Forecasts), maps.Clone(m.Claims), maps.Clone(m.Leases)
	return &c
}

// Equal reports whether two stores hold the same records.
func (m *Memory) Equal(other *Memory) bool { return reflect.DeepEqual(m, other) }

// Commit takes in the records of a step.
func (m *Memory) Commit(r *stored.Records) error {
	for _, name := range r.Deleted {
		delete(m.Books, name)
		delete(m.Names, m.Entities[name].Generation)
		delete(m.Entities, name)
		delete(m.Forecasts, name)
	}
	for _, b := range r.Books {
		m.Books[b.Name] = b
	}
	for _, e := range r.Entities {
		if was, found := m.Entities[e.Name]; found && was.Generation != e.Generation {
			delete(m.Names, was.Generation)
		}
		m.Entities[e.Name], m.Names[e.Generation] = e, e.Name
	}
	if r.Catalogue != nil {
		m.Catalogue = new(*r.Catalogue)
	}
	for _, c := range r.Changes {
		m.Changes.Set(c.Number, c)
	}
	if r.ForgetChanges > 0 {
		m.Changes.Forget(r.ForgetChanges)
	}
	if len(r.Block.Records) > 0 {
		b := r.Block
		if !bytes.Equal(packed.Block(nil, &b), packed.Block(nil, &stored.Block{Records: b.Records})) {
			return fmt.Errorf("block %d: the packed records are not its records", b.Sequence)
		}
		b.Packed, b.Runs = nil, nil
		b.Records, b.Sessions = slices.Clone(b.Records), append([]stored.Session(nil), b.Sessions...)
		m.Blocks.Set(b.Sequence, b)
	}
	if r.ForgetBlocks > 0 {
		m.Blocks.Forget(r.ForgetBlocks)
	}
	if r.Commits != 0 {
		m.Commits = r.Commits
	}
	if r.Clock != nil {
		m.Clock = new(*r.Clock)
	}
	if r.Version != 0 {
		m.Version = r.Version
	}
	for _, p := range r.Remembered {
		m.Remembered[p.Site] = p
	}
	for _, f := range r.Forecasts {
		m.Forecasts[f.Name] = f
	}
	for _, c := range r.Claims {
		c.Sites = slices.Clone(c.Sites)
		m.Claims[c.Number] = c
	}
	for _, n := range r.SettledClaims {
		delete(m.Claims, n)
	}
	for _, l := range r.Leases {
		m.Leases[l.Number] = l
	}
	for _, n := range r.EndedLeases {
		delete(m.Leases, n)
	}
	return nil
}

// Load returns the records from which a core begins.
func (m *Memory) Load() (stored.Restored, error) {
	var r stored.Restored
	if m.Catalogue != nil {
		c := *m.Catalogue
		c.Protocol = c.Protocol.Clone()
		r.Catalogue = &c
	}
	r.Changes = m.Changes.Values()
	r.Entities = InOrder(m.Entities)
	for i := range r.Entities {
		r.Entities[i].Protocol = r.Entities[i].Protocol.Clone()
		r.Entities[i].Star = r.Entities[i].Star.Clone()
		r.Entities[i].Transfer = r.Entities[i].Transfer.Clone()
		r.Entities[i].Handoff = r.Entities[i].Handoff.Clone()
		r.Entities[i].Results = slices.Clone(r.Entities[i].Results)
	}
	r.Books = InOrder(m.Books)
	if len(m.Blocks.List) > 0 {
		r.Blocks = stored.BlockList(m.Blocks.Values())
	}
	r.Clock, r.Version = m.Clock, m.Version
	r.Incarnation, r.Commits, r.Remembered = m.Incarnation, m.Commits, InOrder(m.Remembered)
	r.Forecasts, r.Claims, r.Leases = InOrder(m.Forecasts), InOrder(m.Claims), InOrder(m.Leases)
	for i := range r.Claims {
		r.Claims[i].Sites = slices.Clone(r.Claims[i].Sites)
	}
	return r, nil
}

// InOrder returns the values of m in the order of their keys.
func InOrder[K interface{ ~uint64 | ~string }, V any](m map[K]V) []V {
	var list []V
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}
