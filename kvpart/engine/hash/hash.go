// Package hash registers the backend "hash", a concurrent hash map in memory.
package hash

import (
	"github.com/puzpuzpuz/xsync/v4"

	"github.com/samya-db/samya/kvpart/engine"
)

// hashed is a concurrent hash map in memory; it finds a cell without a lock.
type hashed struct {
	cells *xsync.Map[string, *engine.Cell]
}

var (
	_ engine.Engine = (*hashed)(nil)
	_ engine.Holder = (*hashed)(nil)
)

func init() { engine.Register("hash", engine.Factory{Open: openHash}) }

func openHash(engine.Config) (engine.Engine, error) {
	return &hashed{xsync.NewMap[string, *engine.Cell]()}, nil
}

// Get implements Engine.
func (e *hashed) Get(key string, dst []byte) ([]byte, error) {
	c, ok := e.cells.Load(key)
	if !ok {
		return dst, engine.ErrNotFound
	}
	return c.Get(dst), nil
}

// Put implements Engine.
func (e *hashed) Put(key string, value []byte) error {
	if c, ok := e.cells.Load(key); ok {
		c.Set(value)
	} else {
		e.cells.Store(key, engine.NewCell(value))
	}
	return nil
}

// Delete implements Engine.
func (e *hashed) Delete(key string) error {
	e.cells.Delete(key)
	return nil
}

// Cell implements Holder.
func (e *hashed) Cell(key string) *engine.Cell {
	c, _ := e.cells.Load(key)
	return c
}

// Take implements Holder.
func (e *hashed) Take(key string) *engine.Cell {
	c, _ := e.cells.LoadAndDelete(key)
	return c
}

// Give implements Holder.
func (e *hashed) Give(key string, c *engine.Cell) { e.cells.Store(key, c) }

// Apply implements Engine. The caller is alone on these keys, so nobody sees a part of
// the writes.
func (e *hashed) Apply(writes []engine.Write) error { return engine.ApplyEach(e, writes) }

// Gather implements Engine.
func (e *hashed) Gather(keys []string, visit func(i int, value []byte) error) error {
	for i, key := range keys {
		if c, ok := e.cells.Load(key); ok {
			if err := visit(i, c.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Each implements Engine.
func (e *hashed) Each(visit func(key string, value []byte) error) (err error) {
	e.cells.Range(func(key string, c *engine.Cell) bool {
		err = visit(key, c.Value())
		return err == nil
	})
	return err
}

// DiskBytes implements Engine.
func (e *hashed) DiskBytes() int64 { return 0 }

// Close implements Engine.
func (e *hashed) Close() error { return nil }
