package sim

import (
	"maps"

	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// Disk makes a site's records durable; store.Store is a Disk.
type Disk interface {
	Commit(r *stored.Records) error
	Load() (stored.Restored, error)
}

// Memory is a Disk in memory, with the questions that invariants ask.
type Memory struct{ coretest.Memory }

var _ Disk = (*Memory)(nil)

// NewMemory returns an empty Memory.
func NewMemory(incarnation message.Incarnation) *Memory {
	return &Memory{*coretest.NewMemory(incarnation)}
}

// Clone returns a copy of all records.
func (m *Memory) Clone() *Memory { return &Memory{*m.Memory.Clone()} }

// Equal reports whether m and other hold the same records.
func (m *Memory) Equal(other *Memory) bool { return m.Memory.Equal(&other.Memory) }

// generation is the last generation that the site has given out.
func (m *Memory) generation() uint64 {
	if m.Catalogue == nil {
		return 0
	}
	return m.Catalogue.Generation
}

// oldest is when the oldest remembered requests were answered, by the site's calendar
// then.
func (m *Memory) oldest() int64 {
	if len(m.Blocks.List) == 0 {
		return 0
	}
	return m.Blocks.List[0].Value.Wall
}

// newest is the sequence of the last block; 0 for none.
func (m *Memory) newest() uint64 {
	if n := len(m.Blocks.List); n > 0 {
		return m.Blocks.List[n-1].Number
	}
	return 0
}

// remembers reports whether a block of requests is not forgotten.
func (m *Memory) remembers(sequence uint64) bool {
	_, found := m.Blocks.Find(sequence)
	return found
}

// standing returns the entities, the tree they form and the books after a transaction,
// and nothing else.
func (m *Memory) standing(r *stored.Records) (*Memory, error) {
	after := &Memory{coretest.Memory{
		Catalogue: m.Catalogue, Entities: maps.Clone(m.Entities), Names: maps.Clone(m.Names), Books: maps.Clone(m.Books),
		Forecasts: make(map[string]stored.Forecast),
	}}
	return after, after.Commit(&stored.Records{Deleted: r.Deleted, Books: r.Books, Entities: r.Entities, Catalogue: r.Catalogue})
}
