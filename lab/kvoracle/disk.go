package kvoracle

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/engine"
)

// ErrInjected is the error of writes that a Disk lets fail. A failed write changes
// nothing.
var ErrInjected = errors.New("injected failure")

// Disk is a layer between a store and its engines. It checks that no two methods of
// an engine run with the same key where this is forbidden. It lets other goroutines
// run in between, lets writes fail, and stops all engines for an image of their
// directories.
type Disk struct {
	// Fail is the share of writes that fail, in units of 1/65536.
	Fail atomic.Int64
	// Cells lets the store reach values in memory past the disk. There the disk does
	// not see their use, and no write fails.
	Cells bool
	// Report is called with forbidden uses of an engine.
	Report func(*Violation)
	// gate is held while an engine is used, exclusively for an image.
	gate  sync.RWMutex
	draws atomic.Uint64
}

// Wrap returns a factory of engines behind the disk.
func (d *Disk) Wrap(f engine.Factory) *engine.Factory {
	open := f.Open
	f.Open = func(c engine.Config) (engine.Engine, error) {
		d.gate.RLock()
		defer d.gate.RUnlock()
		e, err := open(c)
		if err != nil {
			return nil, fmt.Errorf("open an engine: %w", err)
		}
		w := &watched{Engine: e, disk: d, used: make(map[string]int)}
		if h, ok := e.(engine.Holder); ok && d.Cells {
			return &watchedHolder{w, h}, nil
		}
		if c, ok := e.(engine.Counter); ok {
			return &watchedCounter{w, c}, nil
		}
		return w, nil
	}
	return &f
}

// Image copies directories while no engine runs, as the end of the process would
// leave them. It returns the times between which the engines stood still.
func (d *Disk) Image(dirs map[string]string, now func() int64) (from, until int64, err error) {
	d.gate.Lock()
	defer d.gate.Unlock()
	from = now()
	for dir, to := range dirs {
		if err := copyTree(dir, to); err != nil {
			return 0, 0, fmt.Errorf("copy %s: %w", dir, err)
		}
	}
	return from, now(), nil
}

// copyTree copies the files of a directory. Process locks are not among the files. An
// engine that is given up meanwhile is not in the copy: a crash leaves all of its files, or
// none.
func copyTree(from, to string) error {
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		return copyEntry(from, to, path, e, err)
	})
	if err != nil {
		return err
	}
	return prune(from, to)
}

// prune removes copies of engines that have gone.
func prune(from, to string) error {
	copies, err := os.ReadDir(to)
	for _, e := range copies {
		if _, gone := os.Stat(filepath.Join(from, e.Name())); errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(to, e.Name())))
		}
	}
	return err
}

// copyEntry copies an entry that WalkDir found below from. A directory may
// disappear between listing and reading, when an engine is given up.
func copyEntry(from, to, path string, e os.DirEntry, err error) error {
	if errors.Is(err, os.ErrNotExist) && path != from {
		return nil
	}
	if err != nil {
		return err
	}
	name := filepath.Join(to, strings.TrimPrefix(path, from))
	if e.IsDir() {
		return os.MkdirAll(name, 0o700)
	}
	return copyFile(path, name)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an engine removes files in the background
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// fails draws whether a write fails.
func (d *Disk) fails() bool {
	share := d.Fail.Load()
	if share == 0 {
		return false
	}
	n := d.draws.Add(1)
	return rand.New(rand.NewPCG(n, 0)).Int64N(1<<16) < share
}

// watched is an engine behind a disk.
type watched struct {
	engine.Engine
	disk *Disk
	mu   sync.Mutex
	// used counts the readers of a key; -1 is a writer.
	used   map[string]int
	closed bool
}

// use marks keys as used, and returns a function that ends the use.
func (w *watched) use(writes bool, keys ...string) (leave func()) {
	w.mu.Lock()
	if w.closed {
		w.disk.Report(violated(Exclusive, "an engine is used with %q after it was closed", keys))
	}
	for _, key := range keys {
		n := w.used[key]
		if n < 0 || writes && n > 0 {
			w.disk.Report(violated(Exclusive, "an engine is used twice at a time with %q", key))
		}
		if writes {
			w.used[key] = -1
		} else {
			w.used[key] = max(n, 0) + 1
		}
	}
	w.mu.Unlock()
	yield()
	w.disk.gate.RLock()
	return func() {
		w.disk.gate.RUnlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, key := range keys {
			if w.used[key] > 1 {
				w.used[key]--
			} else {
				delete(w.used, key)
			}
		}
	}
}

func (w *watched) Get(key string, dst []byte) ([]byte, error) {
	defer w.use(false, key)()
	return w.Engine.Get(key, dst)
}

func (w *watched) Put(key string, value []byte) error {
	defer w.use(true, key)()
	if w.disk.fails() {
		return fmt.Errorf("put: %w", ErrInjected)
	}
	return w.Engine.Put(key, value)
}

func (w *watched) Delete(key string) error {
	defer w.use(true, key)()
	if w.disk.fails() {
		return fmt.Errorf("delete: %w", ErrInjected)
	}
	return w.Engine.Delete(key)
}

func (w *watched) Apply(writes []engine.Write) error {
	keys := make([]string, 0, len(writes))
	for i := range writes {
		keys = append(keys, writes[i].Key)
	}
	defer w.use(true, keys...)()
	if w.disk.fails() {
		return fmt.Errorf("apply: %w", ErrInjected)
	}
	return w.Engine.Apply(writes)
}

func (w *watched) Gather(keys []string, visit func(i int, value []byte) error) error {
	defer w.use(false, keys...)()
	return w.Engine.Gather(keys, visit)
}

func (w *watched) Close() error {
	w.disk.gate.RLock()
	defer w.disk.gate.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for key := range w.used {
		w.disk.Report(violated(Exclusive, "an engine is closed while it is used with %q", key))
	}
	return w.Engine.Close()
}

// watchedHolder is an engine in memory behind a disk; its cells bypass the disk.
type watchedHolder struct {
	*watched
	holder engine.Holder
}

func (w *watchedHolder) Cell(key string) *engine.Cell {
	defer w.use(false, key)()
	return w.holder.Cell(key)
}

func (w *watchedHolder) Take(key string) *engine.Cell {
	defer w.use(true, key)()
	return w.holder.Take(key)
}

func (w *watchedHolder) Give(key string, c *engine.Cell) {
	defer w.use(true, key)()
	w.holder.Give(key, c)
}

// watchedCounter is an engine behind a disk that counts its bytes.
type watchedCounter struct {
	*watched
	engine.Counter
}
