package kvpart

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/samya-db/samya/kvpart/engine"
)

// ram is a disk in memory: its engines are durable, and an image of it is what a crash
// would leave. A hook sees each write before and after it is done.
type ram struct {
	mu   sync.Mutex
	dirs map[string]map[string]string
	// hook may fail a write. It is called without locks.
	hook func(e *ramEngine, writes []engine.Write, done bool) error
}

func newRAM() *ram { return &ram{dirs: make(map[string]map[string]string)} }

func (r *ram) factory() *engine.Factory {
	return &engine.Factory{Durable: true, Open: func(c engine.Config) (engine.Engine, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.dirs[c.Dir] == nil {
			r.dirs[c.Dir] = make(map[string]string)
		}
		return &ramEngine{r, c.Dir}, nil
	}}
}

// image returns a copy of the disk.
func (r *ram) image() *ram {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := newRAM()
	for dir, values := range r.dirs {
		c.dirs[dir] = maps.Clone(values)
	}
	return c
}

// copies returns in how many engines each key is.
func (r *ram) copies() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := make(map[string]int)
	for _, values := range r.dirs {
		for key := range values {
			n[key]++
		}
	}
	return n
}

type ramEngine struct {
	ram *ram
	dir string
}

func (e *ramEngine) Get(key string, dst []byte) ([]byte, error) {
	e.ram.mu.Lock()
	defer e.ram.mu.Unlock()
	value, ok := e.ram.dirs[e.dir][key]
	if !ok {
		return dst, engine.ErrNotFound
	}
	return append(dst, value...), nil
}

func (e *ramEngine) Put(key string, value []byte) error {
	return e.Apply([]engine.Write{{Key: key, Value: value}})
}

func (e *ramEngine) Delete(key string) error {
	return e.Apply([]engine.Write{{Key: key, Delete: true}})
}

func (e *ramEngine) Apply(writes []engine.Write) error {
	if hook := e.ram.hook; hook != nil {
		if err := hook(e, writes, false); err != nil {
			return err
		}
	}
	e.ram.mu.Lock()
	for _, w := range writes {
		if w.Delete {
			delete(e.ram.dirs[e.dir], w.Key)
		} else {
			e.ram.dirs[e.dir][w.Key] = string(w.Value)
		}
	}
	e.ram.mu.Unlock()
	if hook := e.ram.hook; hook != nil {
		return hook(e, writes, true)
	}
	return nil
}

func (e *ramEngine) Gather(keys []string, visit func(i int, value []byte) error) error {
	for i, key := range keys {
		value, err := e.Get(key, nil)
		if errors.Is(err, engine.ErrNotFound) {
			continue
		}
		if err := visit(i, value); err != nil {
			return err
		}
	}
	return nil
}

func (e *ramEngine) Each(visit func(key string, value []byte) error) error {
	e.ram.mu.Lock()
	values := maps.Clone(e.ram.dirs[e.dir])
	e.ram.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := visit(strings.Clone(key), []byte(values[key])); err != nil {
			return err
		}
	}
	return nil
}

func (e *ramEngine) DiskBytes() int64 { return 0 }

func (e *ramEngine) Close() error { return nil }
