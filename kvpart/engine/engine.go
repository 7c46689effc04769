// Package engine is what a partitioned store keeps its values in: one small
// interface, and the backends behind it by name. An engine refuses to know of
// partitions, and to order concurrent use of one key: its caller does both.
package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// The errors of engines; they are wrapped with what was being done.
var (
	// ErrNotFound says that an engine has no value of a key.
	ErrNotFound = errors.New("key not found")
	// ErrBackend says that there is no backend of a name.
	ErrBackend = errors.New("unknown backend")
	// ErrInUse says that another engine, maybe of another process, has the directory.
	ErrInUse = errors.New("directory in use")
	// ErrBroken says that an engine could not write, so that it is open what its disk
	// holds of that write. It refuses all further writes until it is opened again.
	ErrBroken = errors.New("engine broken")
)

// Engine keeps values by key. Its methods may be called at the same time, but
// for one key: no other method with a key runs while Put, Delete or Apply with
// that key do. What a method is handed stays the caller's, and is copied. Keys are
// not empty, and at most 4 KiB long.
type Engine interface {
	// Get appends the value of key to dst and returns that, or dst and ErrNotFound.
	Get(key string, dst []byte) ([]byte, error)
	// Put sets the value of key. A durable engine returns once it is on the disk.
	Put(key string, value []byte) error
	// Delete removes key; it is no error if there is none. A durable engine returns
	// once that is on the disk.
	Delete(key string) error
	// Apply carries writes out in their order, all or none of them, also over a crash
	// if the engine is durable.
	Apply(writes []Write) error
	// Gather visits the values of keys, which ascend, in their order; absent ones are
	// left out. A value is visit's until it returns; visit does not use the engine. No
	// other key is looked at. An error of visit ends it and is returned.
	Gather(keys []string, visit func(i int, value []byte) error) error
	// Each visits all keys and values, in no certain order. A value is visit's until
	// it returns. An error of visit ends it and is returned. Nothing else may run.
	Each(visit func(key string, value []byte) error) error
	// DiskBytes tells how much of the disk the engine takes, about; 0 for one in memory.
	DiskBytes() int64
	// Close releases what the engine holds; nothing else may run or follow.
	Close() error
}

// Write sets the value of a key, or removes it.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
}

// Config is what an engine is opened with.
type Config struct {
	// Dir is a directory of the engine's own that exists; not for engines in memory.
	Dir string
	// Cache is how many bytes a backend with a cache of its own may keep in memory:
	// DefaultCache if 0.
	Cache int64
	// Log is told what a backend does by itself; nowhere if nil.
	Log *slog.Logger
}

// DefaultCache is the cache of an engine, in bytes, unless Config says otherwise.
const DefaultCache = 8 << 20

// Factory opens engines of one kind.
type Factory struct {
	// Durable tells that what Put said to be done outlives the process.
	Durable bool
	// Open opens the engine that its directory holds, or a new one if that is empty.
	Open func(Config) (Engine, error)
}

// factories are the backends by name.
var factories = map[string]Factory{
	"btree": {Open: openBTree},
	"hash":  {Open: openHash},
	"bbolt": {Open: openBolt, Durable: true},
}

// Lookup returns the backend of a name, or fails with ErrBackend.
func Lookup(name string) (Factory, error) {
	f, ok := factories[name]
	if !ok {
		return Factory{}, fmt.Errorf("%w %q: there are %s", ErrBackend, name, strings.Join(Names(), ", "))
	}
	return f, nil
}

// Names are those of all backends, in ascending order.
func Names() []string { return slices.Sorted(maps.Keys(factories)) }
