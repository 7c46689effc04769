// Package bbolt registers the backend "bbolt", a B+tree in a file.
package bbolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/samya-db/samya/internal/boltfile"
	"github.com/samya-db/samya/internal/dirs"

	"github.com/samya-db/samya/kvpart/engine"
)

var (
	bucketValues = []byte("values")
	boltFile     = "values.bolt"
)

const (
	// boltPatience is how long to wait for another user of the file to close it.
	boltPatience = time.Second
	// boltGroup bounds the bytes of a transaction.
	boltGroup = 8 << 20
)

// bolted is a bbolt file. Each transaction is synced. Writes that come during a sync
// share the next transaction.
type bolted struct {
	db   *bolt.DB
	path string
	// commits counts the transactions written. Each ends with a meta page.
	commits atomic.Int64
	// page is the size of a page. DB.Info would read it in the mapped file, and crash the
	// process while the file grows.
	page int64

	mu      sync.Mutex
	busy    bool      // a transaction is being written
	waiting []*commit // in the order of their arrival
	broken  error
}

// commit is a call that waits for a transaction.
type commit struct {
	writes []engine.Write
	err    error
	// wake gets true when the transaction is done, and false to make the caller write the
	// next transaction.
	wake chan bool
}

var commits = sync.Pool{New: func() any { return &commit{wake: make(chan bool, 1)} }}

var (
	_ engine.Engine  = (*bolted)(nil)
	_ engine.Counter = (*bolted)(nil)
)

func init() { engine.Register("bbolt", engine.Factory{Open: openBolt, Durable: true}) }

func openBolt(c engine.Config) (engine.Engine, error) { return openBoltFile(c.Dir, nil) }

// openBoltFile opens the file in a directory; open replaces os.OpenFile if not nil.
func openBoltFile(dir string, open func(string, int, os.FileMode) (*os.File, error)) (*bolted, error) {
	path := filepath.Join(dir, boltFile)
	if err := boltWhole(path); err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: boltPatience,
		// The list of free pages is rebuilt at start instead of being written with every
		// transaction.
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		OpenFile:       open,
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, boltInUse(err))
	}
	// In an existing file this writes and syncs the meta page again, before all else. The
	// page just read may be in the system's cache alone, if its sync failed.
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketValues)
		return err
	})
	if err == nil {
		err = dirs.Sync(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making %s: %w", path, err), db.Close())
	}
	e := &bolted{db: db, path: path, page: int64(db.Info().PageSize)}
	e.commits.Store(1)
	return e, nil
}

func boltInUse(err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return engine.ErrInUse
	}
	return err
}

// boltWhole refuses a truncated or damaged file. bbolt would map it into memory, trust
// it, and crash the process.
func boltWhole(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: boltPatience, ReadOnly: true})
	if err != nil {
		return boltInUse(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return boltfile.Check(path)
}

// Get implements Engine.
func (e *bolted) Get(key string, dst []byte) ([]byte, error) {
	err := e.db.View(func(tx *bolt.Tx) error {
		value := tx.Bucket(bucketValues).Get([]byte(key))
		if value == nil {
			return engine.ErrNotFound
		}
		dst = append(dst, value...)
		return nil
	})
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		err = fmt.Errorf("reading %s: %w", e.path, err)
	}
	return dst, err
}

// Put implements Engine.
func (e *bolted) Put(key string, value []byte) error {
	return e.commit(engine.Write{Key: key, Value: value})
}

// Delete implements Engine.
func (e *bolted) Delete(key string) error { return e.commit(engine.Write{Key: key, Delete: true}) }

// Apply implements Engine.
func (e *bolted) Apply(writes []engine.Write) error { return e.commit(writes...) }

// commit returns once writes are durable. A caller that finds no transaction under way
// writes a transaction for all who wait. Then it hands over to the first call that came
// meanwhile.
func (e *bolted) commit(writes ...engine.Write) error {
	if len(writes) == 0 {
		return nil
	}
	c := commits.Get().(*commit)
	c.writes, c.err = writes, nil
	e.mu.Lock()
	e.waiting = append(e.waiting, c)
	if e.busy {
		e.mu.Unlock()
		if done := <-c.wake; done {
			return c.end()
		}
		e.mu.Lock()
	}
	e.busy = true
	group := e.take()
	err := e.broken
	e.mu.Unlock()
	if err == nil {
		err = e.write(group)
	}
	e.mu.Lock()
	if err != nil && e.broken == nil {
		e.broken = fmt.Errorf("%w: writing %s: %w", engine.ErrBroken, e.path, err)
	}
	err = e.broken
	e.busy = len(e.waiting) > 0
	if e.busy {
		e.waiting[0].wake <- false
	}
	e.mu.Unlock()
	for _, other := range group {
		other.err = err
		if other != c {
			other.wake <- true
		}
	}
	return c.end()
}

func (c *commit) end() error {
	err := c.err
	c.writes = nil
	commits.Put(c)
	return err
}

// take takes the calls that waited longest: at least one, and at most boltGroup bytes if
// more. e.mu is held.
func (e *bolted) take() []*commit {
	size := 0
	for i, c := range e.waiting {
		for j := range c.writes {
			size += len(c.writes[j].Key) + len(c.writes[j].Value)
		}
		if i > 0 && size > boltGroup {
			group := e.waiting[:i:i]
			e.waiting = append([]*commit(nil), e.waiting[i:]...)
			return group
		}
	}
	group := e.waiting
	e.waiting = nil
	return group
}

// write writes a transaction.
func (e *bolted) write(group []*commit) error {
	err := e.db.Update(func(tx *bolt.Tx) error {
		values := tx.Bucket(bucketValues)
		for _, c := range group {
			for i := range c.writes {
				w := &c.writes[i]
				var err error
				if w.Delete {
					err = values.Delete([]byte(w.Key))
				} else {
					err = values.Put([]byte(w.Key), w.Value)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		e.commits.Add(1)
	}
	return err
}

// Gather implements Engine.
func (e *bolted) Gather(keys []string, visit func(i int, value []byte) error) error {
	if len(keys) == 0 {
		return nil
	}
	return e.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketValues).Cursor()
		at, value := cursor.Seek([]byte(keys[0]))
		for i, key := range keys {
			if at != nil && string(at) < key {
				if at, value = cursor.Next(); at != nil && string(at) < key {
					at, value = cursor.Seek([]byte(key))
				}
			}
			if at == nil {
				return nil
			}
			if string(at) != key {
				continue
			}
			if err := visit(i, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// Each implements Engine.
func (e *bolted) Each(visit func(key string, value []byte) error) error {
	return e.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketValues).ForEach(func(key, value []byte) error {
			return visit(string(key), value)
		})
	})
}

// DiskBytes implements Engine.
func (e *bolted) DiskBytes() int64 {
	info, err := os.Stat(e.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// WrittenBytes implements engine.Counter. A transaction writes each page that it
// allocated, and a meta page.
func (e *bolted) WrittenBytes() int64 {
	stats := e.db.Stats()
	return stats.TxStats.GetPageAlloc() + e.commits.Load()*e.page
}

// Close implements Engine.
func (e *bolted) Close() error {
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", e.path, err)
	}
	return nil
}
