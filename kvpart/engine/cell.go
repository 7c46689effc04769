package engine

// Cell is a value in memory. It is written in place: who writes a key is alone on
// it, so that a write of a key that exists takes no lock of the engine's.
type Cell struct{ value []byte }

// Holder is an engine in memory whose values can be reached without a search, and
// handed over to another one without a copy. Who uses a cell uses its key, as with
// the methods of Engine.
type Holder interface {
	// Cell returns the cell of key, nil if there is none. It is the key's until that is
	// removed or taken.
	Cell(key string) *Cell
	// Take removes key and returns its cell, nil if there was none.
	Take(key string) *Cell
	// Give makes c, which was taken elsewhere, the cell of key.
	Give(key string, c *Cell)
}

// wasteful is from how many bytes on memory is given back when a value of less
// than a quarter takes its place.
const wasteful = 256

func newCell(value []byte) *Cell { return &Cell{append([]byte(nil), value...)} }

// Get appends the value to dst.
func (c *Cell) Get(dst []byte) []byte { return append(dst, c.value...) }

// Value returns the value, which is the engine's.
func (c *Cell) Value() []byte { return c.value }

// Set sets the value.
func (c *Cell) Set(value []byte) {
	if cap(c.value) >= wasteful && len(value) < cap(c.value)/4 {
		c.value = nil
	}
	c.value = append(c.value[:0], value...)
}
