// Package btree registers the backend "btree", an ordered map in memory.
package btree

import (
	"sync"

	"github.com/tidwall/btree"

	"github.com/samya-db/samya/kvpart/engine"
)

// ordered is an ordered map in memory.
type ordered struct {
	// mu guards the set of cells, not the values in them.
	mu    sync.RWMutex
	cells btree.Map[string, *engine.Cell]
}

var (
	_ engine.Engine = (*ordered)(nil)
	_ engine.Holder = (*ordered)(nil)
)

func init() { engine.Register("btree", engine.Factory{Open: openBTree}) }

func openBTree(engine.Config) (engine.Engine, error) { return &ordered{}, nil }

// Cell implements Holder.
func (e *ordered) Cell(key string) *engine.Cell {
	e.mu.RLock()
	c, _ := e.cells.Get(key)
	e.mu.RUnlock()
	return c
}

// Get implements Engine.
func (e *ordered) Get(key string, dst []byte) ([]byte, error) {
	c := e.Cell(key)
	if c == nil {
		return dst, engine.ErrNotFound
	}
	return c.Get(dst), nil
}

// Put implements Engine.
func (e *ordered) Put(key string, value []byte) error {
	if c := e.Cell(key); c != nil {
		c.Set(value)
		return nil
	}
	c := engine.NewCell(value)
	e.mu.Lock()
	e.cells.Set(key, c)
	e.mu.Unlock()
	return nil
}

// Delete implements Engine.
func (e *ordered) Delete(key string) error {
	e.mu.Lock()
	e.cells.Delete(key)
	e.mu.Unlock()
	return nil
}

// Take implements Holder.
func (e *ordered) Take(key string) *engine.Cell {
	e.mu.Lock()
	c, _ := e.cells.Delete(key)
	e.mu.Unlock()
	return c
}

// Give implements Holder.
func (e *ordered) Give(key string, c *engine.Cell) {
	e.mu.Lock()
	e.cells.Set(key, c)
	e.mu.Unlock()
}

// Apply implements Engine. The caller is alone on these keys, so nobody sees a part of
// the writes.
func (e *ordered) Apply(writes []engine.Write) error { return engine.ApplyEach(e, writes) }

// Gather implements Engine. The keys of a scan mostly lie side by side, so the search for
// each key begins beside the previous key.
func (e *ordered) Gather(keys []string, visit func(i int, value []byte) error) error {
	if len(keys) == 0 {
		return nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	it := e.cells.Iter()
	ok := it.Seek(keys[0])
	for i, key := range keys {
		if ok && it.Key() < key {
			if ok = it.Next(); ok && it.Key() < key {
				ok = it.Seek(key)
			}
		}
		if !ok {
			return nil
		}
		if it.Key() != key {
			continue
		}
		if err := visit(i, it.Value().Value()); err != nil {
			return err
		}
	}
	return nil
}

// Each implements Engine.
func (e *ordered) Each(visit func(key string, value []byte) error) (err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	e.cells.Scan(func(key string, c *engine.Cell) bool {
		err = visit(key, c.Value())
		return err == nil
	})
	return err
}

// DiskBytes implements Engine.
func (e *ordered) DiskBytes() int64 { return 0 }

// Close implements Engine.
func (e *ordered) Close() error { return nil }
