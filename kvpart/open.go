package kvpart

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/kvpart/engine"
)

// dirPattern matches the name of an engine's directory.
var dirPattern = regexp.MustCompile(`^([a-z]+)-g([0-9]{8,10})-p([0-9]{4,5})$`)

func dirName(backend string, generation uint32, part int) string {
	return fmt.Sprintf("%s-g%08d-p%04d", backend, generation, part)
}

func validBackend(name string) bool { return dirPattern.MatchString(dirName(name, 0, 0)) }

// found is the directory of an engine.
type found struct {
	root, name, backend string
	generation          uint32
	part                int
}

// find finds the directories of engines, the oldest generations first. It removes the
// remains of interrupted removals.
func (hs *homes) find() ([]found, error) {
	var all []found
	for _, root := range hs.dirs {
		if err := dirs.Make(root, 0o700); err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(root)
		// A killed process may have left directory entries that are not durable. They are
		// of new engines, which are written from here on, or of removed engines.
		if err == nil && len(entries) > 0 {
			err = dirs.Sync(root)
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name, removed := strings.CutSuffix(e.Name(), gone)
			m := dirPattern.FindStringSubmatch(name)
			if m == nil || !e.IsDir() {
				continue
			}
			if removed {
				if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
					return nil, err
				}
				continue
			}
			number, err := strconv.ParseUint(m[2], 10, 32)
			part, err2 := strconv.Atoi(m[3])
			if err := errors.Join(err, err2); err != nil {
				return nil, fmt.Errorf("%w: %s in %s: %w", ErrFormat, name, root, err)
			}
			all = append(all, found{root, name, m[1], uint32(number), part})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		if a.generation != b.generation {
			return int(int64(a.generation) - int64(b.generation))
		}
		return a.part - b.part
	})
	return all, nil
}

// open opens the existing engines. It adds a new generation if the last generation does
// not have the present layout.
func (hs *homes) open() (err error) {
	all, err := hs.find()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, hs.close())
		}
	}()
	fits := 0
	for _, f := range all {
		if n := len(hs.all); n == 0 || hs.all[n-1].number != f.generation {
			hs.all = append(hs.all, &generation{number: f.generation})
			fits = 0
		}
		g := hs.all[len(hs.all)-1]
		h, err := hs.reopen(g, f)
		if err != nil {
			return err
		}
		if f.backend == hs.backend && f.part == len(g.homes) && f.root == hs.dirs[f.part%len(hs.dirs)] {
			fits++
		}
		g.homes = append(g.homes, h)
	}
	var last *generation
	if n := len(hs.all); n > 0 {
		last = hs.all[n-1]
	}
	if last == nil || fits != hs.width || len(last.homes) != hs.width {
		number := uint32(1)
		if last != nil {
			number = last.number + 1
		}
		if last, err = hs.fresh(number); err != nil {
			return err
		}
		hs.all = append(hs.all, last)
	}
	hs.present.Store(last)
	return nil
}

// reopen opens the engine in a directory, whatever its backend.
func (hs *homes) reopen(g *generation, f found) (*home, error) {
	factory := hs.factory
	if f.backend != hs.backend {
		var err error
		if factory, err = engine.Lookup(f.backend); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", f.name, f.root, err)
		}
	}
	c := hs.config
	c.Dir = filepath.Join(f.root, f.name)
	e, err := factory.Open(c)
	if err != nil {
		return nil, err
	}
	return &home{engine: e, gen: g, part: f.part, dir: c.Dir, stamped: true}, nil
}

// close closes all engines. It also returns the first error for which no caller waited.
func (hs *homes) close() error {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	err := hs.fault
	for _, g := range hs.all {
		for _, h := range g.homes {
			if h.closed {
				continue
			}
			hs.spend(h)
			if failed := h.engine.Close(); failed != nil {
				err = errors.Join(err, h.failed(failed))
			}
		}
	}
	hs.all = nil
	return err
}

// copied is a copy of a key that was found.
type copied struct {
	home    *home
	mark    mark
	version uint64
}

// load finds the home of each key, and removes stale copies.
func (hs *homes) load() (map[string]*home, error) {
	best := make(map[string]copied)
	stale := make(map[*home][]engine.Write)
	for _, g := range hs.all {
		for _, h := range g.homes {
			err := h.engine.Each(func(key string, value []byte) error {
				m, version, err := readStamp(value)
				if err != nil {
					return fmt.Errorf("key %.64q: %w", key, err)
				}
				hs.version.Store(max(hs.version.Load(), version))
				c := copied{h, m, version}
				if other, ok := best[key]; ok {
					if other.version > version {
						c, other = other, c
					}
					stale[other.home] = append(stale[other.home], engine.Write{Key: key, Delete: true})
				}
				best[key] = c
				return nil
			})
			if err != nil {
				return nil, h.failed(err)
			}
		}
	}
	// The marks of removed keys go only after all stale copies have gone.
	if err := applyAll(stale); err != nil {
		return nil, err
	}
	clear(stale)
	homes := make(map[string]*home, len(best))
	for key, c := range best {
		if c.mark == markGone {
			stale[c.home] = append(stale[c.home], engine.Write{Key: key, Delete: true})
			continue
		}
		homes[key] = c.home
		c.home.keys.Add(1)
	}
	return homes, applyAll(stale)
}

// applyAll carries writes out, in batches.
func applyAll(writes map[*home][]engine.Write) error {
	for h, all := range writes {
		for part := range slices.Chunk(all, 1024) {
			if err := h.engine.Apply(part); err != nil {
				return h.failed(err)
			}
		}
	}
	return nil
}
