package engine

// Cell is a value in memory. It is written in place: the writer of a key is alone on the
// key, so that overwriting takes no lock of the engine.
type Cell struct{ value []byte }

// Holder is an engine in memory that gives access to its values without a search, and
// hands them to another engine without a copy. Using a cell counts as using its key,
// under the rules of Engine.
type Holder interface {
	// Cell returns the cell of key, nil if the key has none. It is valid until key is
	// removed or taken.
	Cell(key string) *Cell
	// Take removes key and returns its cell, nil if there was none.
	Take(key string) *Cell
	// Give makes c, which was taken elsewhere, the cell of key.
	Give(key string, c *Cell)
}

// wasteful is the least capacity, in bytes, that is given back when a new value takes
// less than a quarter of it.
const wasteful = 256

// NewCell returns a cell with a copy of value.
func NewCell(value []byte) *Cell { return &Cell{append([]byte(nil), value...)} }

// Get appends the value to dst.
func (c *Cell) Get(dst []byte) []byte { return append(dst, c.value...) }

// Value returns the value, which belongs to the engine.
func (c *Cell) Value() []byte { return c.value }

// Set sets the value.
func (c *Cell) Set(value []byte) {
	if cap(c.value) >= wasteful && len(value) < cap(c.value)/4 {
		c.value = nil
	}
	c.value = append(c.value[:0], value...)
}
