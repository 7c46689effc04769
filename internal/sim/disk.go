package sim

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/samya-db/samya/site/core"
)

// Disk is where a site's records become durable; store.Store is one.
type Disk interface {
	Commit(r *core.Records) error
	Load() (core.Restored, error)
}

// Memory is a Disk of maps, for tests. Records in it are never changed, only replaced.
type Memory struct {
	catalogue *core.CatalogueRecord
	changes   map[uint64]core.ChangeRecord
	entities  map[string]core.EntityRecord
	books     map[string]core.BooksRecord
	blocks    map[uint64]core.RequestBlock
	requests  map[core.RequestKey]core.RequestRecord

	incarnation core.Incarnation
	commits     core.Commits
	remembered  map[core.SiteID]core.Remembered
	forecasts   map[string]core.ForecastRecord
	claims      map[core.ClaimNumber]core.ClaimRecord
	leases      map[uint64]core.LeaseRecord
}

var _ Disk = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory(incarnation core.Incarnation) *Memory {
	return &Memory{
		incarnation: incarnation, remembered: make(map[core.SiteID]core.Remembered),
		forecasts: make(map[string]core.ForecastRecord),
		claims:    make(map[core.ClaimNumber]core.ClaimRecord), leases: make(map[uint64]core.LeaseRecord),
		changes:  make(map[uint64]core.ChangeRecord),
		entities: make(map[string]core.EntityRecord), books: make(map[string]core.BooksRecord),
		blocks: make(map[uint64]core.RequestBlock), requests: make(map[core.RequestKey]core.RequestRecord),
	}
}

// Clone returns a copy of all that it holds.
func (m *Memory) Clone() *Memory {
	c := *m
	c.changes, c.entities, c.books = maps.Clone(m.changes), maps.Clone(m.entities), maps.Clone(m.books)
	c.blocks, c.requests, c.remembered = maps.Clone(m.blocks), maps.Clone(m.requests), maps.Clone(m.remembered)
	c.forecasts, c.claims, c.leases = maps.Clone(m.forecasts), maps.Clone(m.claims), maps.Clone(m.leases)
	return &c
}

// Equal reports whether two hold the same.
func (m *Memory) Equal(other *Memory) bool { return reflect.DeepEqual(m, other) }

// generation is the last one that the site has given out.
func (m *Memory) generation() uint64 {
	if m.catalogue == nil {
		return 0
	}
	return m.catalogue.Generation
}

// Commit implements Disk.
func (m *Memory) Commit(r *core.Records) error {
	for _, name := range r.Deleted {
		delete(m.books, name)
		delete(m.entities, name)
		delete(m.forecasts, name)
	}
	for _, b := range r.Books {
		m.books[b.Name] = b
	}
	for _, e := range r.Entities {
		m.entities[e.Name] = e
	}
	if r.Catalogue != nil {
		m.catalogue = new(*r.Catalogue)
	}
	for _, c := range r.Changes {
		m.changes[c.Number] = c
	}
	if r.ForgetChanges > 0 {
		maps.DeleteFunc(m.changes, func(n uint64, _ core.ChangeRecord) bool { return n < r.ForgetChanges })
	}
	if len(r.Block.Records) > 0 {
		b := r.Block
		b.Records = slices.Clone(b.Records)
		m.blocks[b.Sequence] = b
		for _, q := range b.Records {
			m.requests[q.Key] = q
		}
	}
	if r.ForgetBlocks > 0 {
		maps.DeleteFunc(m.blocks, func(n uint64, b core.RequestBlock) bool {
			if n >= r.ForgetBlocks {
				return false
			}
			for _, q := range b.Records {
				// A later block may hold a later record of it.
				if last := m.requests[q.Key]; last.Equal(&q) {
					delete(m.requests, q.Key)
				}
			}
			return true
		})
	}
	if r.Commits != 0 {
		m.commits = r.Commits
	}
	for _, p := range r.Remembered {
		m.remembered[p.Site] = p
	}
	for _, f := range r.Forecasts {
		m.forecasts[f.Name] = f
	}
	for _, c := range r.Claims {
		c.Sites = slices.Clone(c.Sites)
		m.claims[c.Number] = c
	}
	for _, n := range r.SettledClaims {
		delete(m.claims, n)
	}
	for _, l := range r.Leases {
		m.leases[l.Number] = l
	}
	for _, n := range r.EndedLeases {
		delete(m.leases, n)
	}
	return nil
}

// Load implements Disk.
func (m *Memory) Load() (core.Restored, error) {
	var r core.Restored
	if m.catalogue != nil {
		c := *m.catalogue
		c.Protocol = c.Protocol.Clone()
		r.Catalogue = &c
	}
	r.Changes = inOrder(m.changes)
	r.Entities = inOrder(m.entities)
	for i := range r.Entities {
		r.Entities[i].Protocol = r.Entities[i].Protocol.Clone()
		r.Entities[i].Star = r.Entities[i].Star.Clone()
		r.Entities[i].Transfer = r.Entities[i].Transfer.Clone()
		r.Entities[i].Results = slices.Clone(r.Entities[i].Results)
	}
	r.Books = inOrder(m.books)
	r.Blocks = inOrder(m.blocks)
	r.Incarnation, r.Commits, r.Remembered = m.incarnation, m.commits, inOrder(m.remembered)
	r.Forecasts, r.Claims, r.Leases = inOrder(m.forecasts), inOrder(m.claims), inOrder(m.leases)
	for i := range r.Claims {
		r.Claims[i].Sites = slices.Clone(r.Claims[i].Sites)
	}
	return r, nil
}

func inOrder[K interface{ ~uint64 | ~string }, V any](m map[K]V) []V {
	var list []V
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

// oldest is when the oldest requests were answered that are remembered, by the
// site's calendar then.
func (m *Memory) oldest() int64 {
	first := uint64(math.MaxUint64)
	for sequence := range m.blocks {
		first = min(first, sequence)
	}
	return m.blocks[first].Wall
}
