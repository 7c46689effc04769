package sim

import (
	"maps"
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
	changes   series[core.ChangeRecord]
	entities  map[string]core.EntityRecord
	// names are those of the entities, by generation.
	names  map[uint64]string
	books  map[string]core.BooksRecord
	blocks series[core.RequestBlock]

	incarnation core.Incarnation
	commits     core.Commits
	remembered  map[core.SiteID]core.Remembered
	forecasts   map[string]core.ForecastRecord
	claims      map[core.ClaimNumber]core.ClaimRecord
	leases      map[uint64]core.LeaseRecord
	clock       *core.ClockRecord
}

var _ Disk = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory(incarnation core.Incarnation) *Memory {
	return &Memory{
		incarnation: incarnation, remembered: make(map[core.SiteID]core.Remembered),
		forecasts: make(map[string]core.ForecastRecord),
		claims:    make(map[core.ClaimNumber]core.ClaimRecord), leases: make(map[uint64]core.LeaseRecord),
		entities: make(map[string]core.EntityRecord), names: make(map[uint64]string), books: make(map[string]core.BooksRecord),
	}
}

// Clone returns a copy of all that it holds.
func (m *Memory) Clone() *Memory {
	c := *m
	c.changes, c.entities, c.names, c.books = m.changes.copied(), maps.Clone(m.entities), maps.Clone(m.names), maps.Clone(m.books)
	c.blocks, c.remembered = m.blocks.copied(), maps.Clone(m.remembered)
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
		delete(m.names, m.entities[name].Generation)
		delete(m.entities, name)
		delete(m.forecasts, name)
	}
	for _, b := range r.Books {
		m.books[b.Name] = b
	}
	for _, e := range r.Entities {
		if was, found := m.entities[e.Name]; found && was.Generation != e.Generation {
			delete(m.names, was.Generation)
		}
		m.entities[e.Name], m.names[e.Generation] = e, e.Name
	}
	if r.Catalogue != nil {
		m.catalogue = new(*r.Catalogue)
	}
	for _, c := range r.Changes {
		m.changes.set(c.Number, c)
	}
	if r.ForgetChanges > 0 {
		m.changes.forget(r.ForgetChanges)
	}
	if len(r.Block.Records) > 0 {
		b := r.Block
		b.Records = slices.Clone(b.Records)
		m.blocks.set(b.Sequence, b)
	}
	if r.ForgetBlocks > 0 {
		m.blocks.forget(r.ForgetBlocks)
	}
	if r.Commits != 0 {
		m.commits = r.Commits
	}
	if r.Clock != nil {
		m.clock = new(*r.Clock)
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
	r.Changes = m.changes.values()
	r.Entities = inOrder(m.entities)
	for i := range r.Entities {
		r.Entities[i].Protocol = r.Entities[i].Protocol.Clone()
		r.Entities[i].Star = r.Entities[i].Star.Clone()
		r.Entities[i].Transfer = r.Entities[i].Transfer.Clone()
		r.Entities[i].Results = slices.Clone(r.Entities[i].Results)
	}
	r.Books = inOrder(m.books)
	r.Blocks = m.blocks.values()
	r.Clock = m.clock
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
	if len(m.blocks.list) == 0 {
		return 0
	}
	return m.blocks.list[0].value.Wall
}

// remembers reports whether a block of requests is not forgotten.
func (m *Memory) remembers(sequence uint64) bool {
	_, found := m.blocks.find(sequence)
	return found
}

// standing is what stands below what after a transaction, and its books; it has
// nothing else.
func (m *Memory) standing(r *core.Records) (*Memory, error) {
	after := &Memory{
		catalogue: m.catalogue, entities: maps.Clone(m.entities), names: maps.Clone(m.names), books: maps.Clone(m.books),
		forecasts: make(map[string]core.ForecastRecord),
	}
	return after, after.Commit(&core.Records{Deleted: r.Deleted, Books: r.Books, Entities: r.Entities, Catalogue: r.Catalogue})
}
