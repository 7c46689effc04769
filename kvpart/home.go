package kvpart

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/kvpart/engine"
)

// home is an engine and where it is.
type home struct {
	engine  engine.Engine
	gen     *generation
	part    int
	dir     string // "" in memory
	stamped bool
	holder  engine.Holder // the engine, if it is one and values are not stamped
	closed  bool          // guarded by homes.mu
	// keys counts the copies of keys that are here, and those that are on their way:
	// a home of a former generation without any is closed.
	keys atomic.Int64
}

// generation is the engines that were made together: one, or one a partition.
type generation struct {
	number uint32
	homes  []*home
}

func (g *generation) home(partition int32) *home { return g.homes[int(partition)%len(g.homes)] }

// get appends the value of key to dst.
func (h *home) get(key string, dst []byte) ([]byte, error) {
	n := len(dst)
	out, err := h.engine.Get(key, dst)
	if err != nil {
		return dst, h.failed(err)
	}
	if h.stamped {
		if _, _, err := readStamp(out[n:]); err != nil {
			return dst, err
		}
		out = append(out[:n], out[n+stampSize:]...)
	}
	return out, nil
}

// failed says where an error comes from.
func (h *home) failed(err error) error {
	return fmt.Errorf("engine %d of generation %d: %w", h.part, h.gen.number, err)
}

// plain returns what a value of the engine is without its stamp.
func (h *home) plain(value []byte) ([]byte, error) {
	if !h.stamped {
		return value, nil
	}
	if _, _, err := readStamp(value); err != nil {
		return nil, err
	}
	return value[stampSize:], nil
}

// gone is the end of the name of a directory that is being removed.
const gone = ".gone"

// discard closes the engine and removes its directory.
func (h *home) discard() error {
	if err := h.engine.Close(); err != nil {
		return err
	}
	if h.dir == "" {
		return nil
	}
	// What is left of a directory after a crash is no engine.
	if err := os.Rename(h.dir, h.dir+gone); err != nil {
		return err
	}
	return errors.Join(dirs.Sync(filepath.Dir(h.dir)), os.RemoveAll(h.dir+gone))
}

// homes are all engines of a store.
type homes struct {
	backend string
	factory engine.Factory
	config  engine.Config // but for its directory
	dirs    []string
	width   int // engines of a generation
	most    int // generations
	// version is the highest of a stamp.
	version atomic.Uint64
	present atomic.Pointer[generation]
	// kick tells the upkeep that there may be work.
	kick chan struct{}
	suspects

	// mu guards what follows.
	mu sync.Mutex
	// all are the generations with engines, ascending; the last is the present one.
	all []*generation
	// fault is the first error of what nobody waited for.
	fault error
}

// target returns where a key of a partition that is written belongs. The home stays
// until it is released, even if a generation follows.
func (hs *homes) target(partition int32) *home {
	for {
		g := hs.present.Load()
		h := g.home(partition)
		h.keys.Add(1)
		if hs.present.Load() == g {
			return h
		}
		hs.drop(h)
	}
}

// drop takes back what target or a copy of a key counts for.
func (hs *homes) drop(h *home) {
	if h.keys.Add(-1) == 0 && h.gen != hs.present.Load() {
		hs.wake()
	}
}

// wake has the upkeep look for work.
func (hs *homes) wake() {
	select {
	case hs.kick <- struct{}{}:
	default: // it will
	}
}

// fresh opens the engines of a new generation.
func (hs *homes) fresh(number uint32) (g *generation, err error) {
	g = &generation{number: number}
	defer func() {
		if err == nil {
			return
		}
		err = fmt.Errorf("open generation %d: %w", number, err)
		for _, h := range g.homes {
			err = errors.Join(err, h.discard())
		}
		g = nil
	}()
	for p := range hs.width {
		h := &home{gen: g, part: p, stamped: hs.factory.Durable}
		c := hs.config
		if hs.factory.Durable {
			root := hs.dirs[p%len(hs.dirs)]
			h.dir = filepath.Join(root, dirName(hs.backend, number, p))
			c.Dir = h.dir
			if err := dirs.Make(h.dir, 0o700); err != nil {
				return g, err
			}
		}
		if h.engine, err = hs.factory.Open(c); err != nil {
			return g, err
		}
		if !h.stamped {
			h.holder, _ = h.engine.(engine.Holder)
		}
		g.homes = append(g.homes, h)
	}
	return g, nil
}

// next opens the engines of the next generation; nil if there are as many as may be.
func (hs *homes) next() (*generation, error) {
	hs.mu.Lock()
	n, last := len(hs.all), hs.all[len(hs.all)-1].number
	hs.mu.Unlock()
	if n >= hs.most {
		return nil, nil
	}
	return hs.fresh(last + 1)
}

// follow makes g, which is the present generation by then, known to the upkeep.
func (hs *homes) follow(g *generation) {
	hs.mu.Lock()
	hs.all = append(hs.all, g)
	hs.mu.Unlock()
	hs.wake()
}

// crowded returns the oldest generation, if there are as many as may be.
func (hs *homes) crowded() *generation {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if len(hs.all) < hs.most {
		return nil
	}
	return hs.all[0]
}

// retire closes the homes of former generations that hold nothing.
func (hs *homes) retire() (err error) {
	hs.mu.Lock()
	present := hs.present.Load()
	var empty []*home
	hs.all = slices.DeleteFunc(hs.all, func(g *generation) bool {
		left := 0
		for _, h := range g.homes {
			switch {
			case h.closed:
			case g == present || h.keys.Load() > 0:
				left++
			default:
				h.closed = true
				empty = append(empty, h)
			}
		}
		return left == 0
	})
	hs.mu.Unlock()
	for _, h := range empty {
		if failed := h.discard(); failed != nil {
			err = errors.Join(err, h.failed(failed))
		}
	}
	return err
}

// stats tells how many generations there are, and what they take of disks.
func (hs *homes) stats() (generations int, disk int64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for _, g := range hs.all {
		for _, h := range g.homes {
			if !h.closed {
				disk += h.engine.DiskBytes()
			}
		}
	}
	return len(hs.all), disk
}
