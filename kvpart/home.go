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

// home is an engine and its place.
type home struct {
	engine  engine.Engine
	gen     *generation
	part    int
	dir     string // "" in memory
	stamped bool
	holder  engine.Holder // the engine, if it is a Holder and values have no stamp
	closed  bool          // guarded by homes.mu
	// keys counts the copies of keys in the engine, and the copies on their way to it. A
	// home of a former generation is closed once keys is 0.
	keys atomic.Int64
}

// generation is a set of engines made together: a single engine, or an engine a
// partition.
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

// failed adds the engine and its generation to an error.
func (h *home) failed(err error) error {
	return fmt.Errorf("engine %d of generation %d: %w", h.part, h.gen.number, err)
}

// plain returns a value of the engine without its stamp.
func (h *home) plain(value []byte) ([]byte, error) {
	if !h.stamped {
		return value, nil
	}
	if _, _, err := readStamp(value); err != nil {
		return nil, err
	}
	return value[stampSize:], nil
}

// gone is the suffix of a directory that is being removed.
const gone = ".gone"

// discard closes the engine and removes its directory.
func (h *home) discard() error {
	if err := h.engine.Close(); err != nil {
		return err
	}
	if h.dir == "" {
		return nil
	}
	// After a crash the rest of a directory is not taken for an engine.
	if err := os.Rename(h.dir, h.dir+gone); err != nil {
		return err
	}
	return errors.Join(dirs.Sync(filepath.Dir(h.dir)), os.RemoveAll(h.dir+gone))
}

// homes holds all engines of a store.
type homes struct {
	backend string
	factory engine.Factory
	config  engine.Config // without its directory
	dirs    []string
	width   int // engines in a generation
	most    int // bound on generations
	// version is the highest version in any stamp.
	version atomic.Uint64
	present atomic.Pointer[generation]
	// kick tells the upkeep that there may be work.
	kick chan struct{}
	suspects
	// eager says that values follow their keys to other engines in the background. Else
	// each value moves when it is written.
	eager bool
	// arrived is the epoch of the map that all values have followed.
	arrived atomic.Uint64
	// strayed says that a transaction has put keys in the engine of another partition.
	strayed atomic.Bool
	// followed counts the values that moved after their keys in the background.
	followed atomic.Int64

	// mu guards the fields below.
	mu sync.Mutex
	// all are the generations with open engines, ascending; the last is the present one.
	all []*generation
	// fault is the first error for which no caller waited.
	fault error
	// spent are the bytes that engines closed since have written, by partition.
	spent []int64
}

// target returns the home to which writes of a partition go. It counts a key there, so
// that the home stays open until drop, even if a new generation follows.
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

// drop takes back a key counted by target or for a copy.
func (hs *homes) drop(h *home) {
	if h.keys.Add(-1) == 0 && h.gen != hs.present.Load() {
		hs.wake()
	}
}

// wake makes the upkeep look for work.
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

// next opens the engines of the next generation. It returns nil if the bound on
// generations is reached.
func (hs *homes) next() (*generation, error) {
	hs.mu.Lock()
	n, last := len(hs.all), hs.all[len(hs.all)-1].number
	hs.mu.Unlock()
	if n >= hs.most {
		return nil, nil
	}
	return hs.fresh(last + 1)
}

// follow adds g to the generations that the upkeep looks at. The switch has already made
// g the present generation.
func (hs *homes) follow(g *generation) {
	hs.mu.Lock()
	hs.all = append(hs.all, g)
	hs.mu.Unlock()
	hs.wake()
}

// crowded returns the oldest generation if the bound on generations is reached, or nil.
func (hs *homes) crowded() *generation {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if len(hs.all) < hs.most {
		return nil
	}
	return hs.all[0]
}

// retire closes homes of former generations that hold no keys.
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
				hs.spend(h)
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

// stats returns the number of generations, and the bytes they take on disks.
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
