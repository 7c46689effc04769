// Package engine keeps the values of a partitioned store: a small interface, and a
// register of backends by name, each in a package of its own. An engine does not know partitions, nor order concurrent
// use of the same key: its caller does both.
package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// The errors of engines. They are wrapped with the operation that failed.
var (
	// ErrNotFound says that a key has no value in the engine.
	ErrNotFound = errors.New("key not found")
	// ErrBackend says that no registered backend has a name.
	ErrBackend = errors.New("unknown backend")
	// ErrInUse says that another engine, maybe of another process, has the directory.
	ErrInUse = errors.New("directory in use")
	// ErrBroken says that an engine could not write: whether the write is on disk is
	// unknown. The engine refuses all further writes until it is opened again.
	ErrBroken = errors.New("engine broken")
)

// Engine keeps values by key. Its methods may be called at the same time. But while Put,
// Delete or Apply runs with a key, no other method with that key may run. Arguments stay
// the caller's, and are copied. Keys are not empty, and at most 4 KiB long.
type Engine interface {
	// Get appends the value of key to dst and returns the result, or dst and ErrNotFound.
	Get(key string, dst []byte) ([]byte, error)
	// Put sets the value of key. A durable engine returns once the value is on disk.
	Put(key string, value []byte) error
	// Delete removes key; removing a missing key is no error. A durable engine returns
	// once the removal is on disk.
	Delete(key string) error
	// Apply carries writes out in their order, all or none of them; with a durable engine
	// also over a crash.
	Apply(writes []Write) error
	// Gather visits the values of keys, which ascend, in their order, and skips absent
	// keys. It looks at no other key. A value is valid until visit returns. visit must
	// not use the engine. An error of visit ends Gather, which returns it.
	Gather(keys []string, visit func(i int, value []byte) error) error
	// Each visits all keys and values, in no certain order. A value is valid until visit
	// returns. An error of visit ends Each, which returns it. Nothing else may run.
	Each(visit func(key string, value []byte) error) error
	// DiskBytes returns about how much of the disk the engine takes; 0 in memory.
	DiskBytes() int64
	// Close releases the resources of the engine; nothing else may run or follow.
	Close() error
}

// Counter is an engine on a disk that counts the bytes it writes.
type Counter interface {
	// WrittenBytes returns about how many bytes the engine has written to its disk since
	// it was opened: values, and all that the engine writes besides for their sake, such
	// as a log, pages and compactions. It never falls.
	WrittenBytes() int64
}

// Write sets the value of a key, or removes it.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
}

// Config configures an engine.
type Config struct {
	// Dir is an existing directory of the engine's own; engines in memory ignore it.
	Dir string
	// Cache bounds the bytes that a backend with a cache of its own keeps in memory:
	// DefaultCache if 0.
	Cache int64
	// Log is told of a backend's own activities; nil discards them.
	Log *slog.Logger
}

// DefaultCache is the cache of an engine, in bytes, if Config.Cache is 0.
const DefaultCache = 8 << 20

// Factory opens engines of a kind.
type Factory struct {
	// Durable says that completed writes outlive the process.
	Durable bool
	// Open opens the engine in its directory, or a new engine if the directory is empty.
	Open func(Config) (Engine, error)
}

// backends are the registered backends by name.
var backends struct {
	sync.RWMutex
	byName map[string]Factory
}

// Register makes a backend known by a name of lower-case letters; the names of
// directories have it. Packages of backends call Register in init: whoever wants one
// imports its package. Register panics if the name is bad or taken, or f has no Open.
func Register(name string, f Factory) {
	if name == "" || strings.Trim(name, letters) != "" {
		panic(fmt.Sprintf("engine: backend %q: want a name of lower-case letters", name))
	}
	if f.Open == nil {
		panic(fmt.Sprintf("engine: backend %q: no Open", name))
	}
	backends.Lock()
	defer backends.Unlock()
	if _, ok := backends.byName[name]; ok {
		panic(fmt.Sprintf("engine: backend %q is registered twice", name))
	}
	if backends.byName == nil {
		backends.byName = make(map[string]Factory)
	}
	backends.byName[name] = f
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	// here is the folder of the packages in provided.
	here = "github.com/samya-db/samya/kvpart/engine/"
)

// provided are the backends that have packages below this package.
var provided = []string{"bbolt", "btree", "hash"}

// Lookup returns the backend of a name. If the backend is not registered, Lookup fails
// with ErrBackend, and names the registered backends and the import that may be missing.
func Lookup(name string) (Factory, error) {
	backends.RLock()
	f, ok := backends.byName[name]
	backends.RUnlock()
	if ok {
		return f, nil
	}
	hint := "the package of another must be imported"
	if slices.Contains(provided, name) {
		hint = fmt.Sprintf("import _ %q", here+name)
	}
	return Factory{}, fmt.Errorf("%w %q: registered are %s; %s", ErrBackend, name, strings.Join(Names(), ", "), hint)
}

// Names returns the names of the registered backends, in ascending order.
func Names() []string {
	backends.RLock()
	defer backends.RUnlock()
	return slices.Sorted(maps.Keys(backends.byName))
}

// ApplyEach is Apply for engines in memory, which cannot fail: write by write.
func ApplyEach(e Engine, writes []Write) error {
	for i := range writes {
		w := &writes[i]
		var err error
		if w.Delete {
			err = e.Delete(w.Key)
		} else {
			err = e.Put(w.Key, w.Value)
		}
		if err != nil {
			return fmt.Errorf("write %d of %d: %w", i+1, len(writes), err)
		}
	}
	return nil
}
