package backends

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/samya-db/samya/kvpart/engine"
)

const (
	// pebbleTable is the size of the table in memory, in bytes; a few tables may
	// exist.
	pebbleTable = 4 << 20
	// pebbleFiles bounds the open files.
	pebbleFiles = 256
	// pebbleBlock is the block of a disk, in bytes. Each sync writes the last block of the
	// log again.
	pebbleBlock = 4 << 10
)

// lsm is a log-structured merge tree. Each write is synced; the library's log
// syncs for all who wait at once.
type lsm struct {
	db     *pebble.DB
	lock   *pebble.Lock
	dir    string
	broken *atomic.Pointer[error]
	// opened is the count of the library when the engine was opened.
	opened int64
	// syncs counts the writes, which are synced each.
	syncs atomic.Int64
	// told is the highest count told: the parts of the library's count change at
	// different times.
	told atomic.Int64
}

var (
	_ engine.Engine  = (*lsm)(nil)
	_ engine.Counter = (*lsm)(nil)
)

func openPebble(c engine.Config) (engine.Engine, error) { return openPebbleOn(c, vfs.Default) }

// openPebbleOn opens an engine in a file system.
func openPebbleOn(c engine.Config, fs vfs.FS) (*lsm, error) {
	cache := c.Cache
	if cache == 0 {
		cache = engine.DefaultCache
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	lock, err := pebble.LockDirectory(c.Dir, fs)
	if err != nil {
		return nil, fmt.Errorf("opening pebble in %s: %w: %w", c.Dir, engine.ErrInUse, err)
	}
	broken := new(atomic.Pointer[error])
	db, err := pebble.Open(c.Dir, &pebble.Options{
		FS:                 fs,
		Lock:               lock,
		CacheSize:          cache,
		MemTableSize:       pebbleTable,
		MaxOpenFiles:       pebbleFiles,
		FormatMajorVersion: pebble.FormatNewest,
		Logger:             pebbleLog{log.With("dir", c.Dir), broken},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening pebble in %s: %w", c.Dir, err), lock.Close())
	}
	e := &lsm{db: db, lock: lock, dir: c.Dir, broken: broken}
	e.opened = e.counted()
	return e, nil
}

// pebbleLog hands the library's log to slog. A fatal message does not end the
// process: it breaks the engine.
type pebbleLog struct {
	log    *slog.Logger
	broken *atomic.Pointer[error]
}

// Infof implements pebble.Logger.
func (l pebbleLog) Infof(format string, args ...any) { l.say(slog.LevelDebug, format, args) }

// Errorf implements pebble.Logger.
func (l pebbleLog) Errorf(format string, args ...any) { l.say(slog.LevelWarn, format, args) }

// Fatalf implements pebble.Logger.
func (l pebbleLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf("%w: "+format, append([]any{engine.ErrBroken}, args...)...)
	l.broken.CompareAndSwap(nil, &err)
	l.say(slog.LevelError, format, args)
}

func (l pebbleLog) say(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "pebble", "message", fmt.Sprintf(format, args...))
	}
}

// Get implements engine.Engine.
func (e *lsm) Get(key string, dst []byte) ([]byte, error) {
	value, closer, err := e.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, engine.ErrNotFound
	}
	if err != nil {
		return dst, fmt.Errorf("reading pebble in %s: %w", e.dir, err)
	}
	dst = append(dst, value...)
	return dst, closer.Close()
}

// Put implements engine.Engine.
func (e *lsm) Put(key string, value []byte) error {
	if err := e.whole(); err != nil {
		return err
	}
	return e.wrote(e.db.Set([]byte(key), value, pebble.Sync))
}

// Delete implements engine.Engine.
func (e *lsm) Delete(key string) error {
	if err := e.whole(); err != nil {
		return err
	}
	return e.wrote(e.db.Delete([]byte(key), pebble.Sync))
}

// Apply implements engine.Engine.
func (e *lsm) Apply(writes []engine.Write) (err error) {
	if err := e.whole(); err != nil {
		return err
	}
	batch := e.db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	for i := range writes {
		w := &writes[i]
		if w.Delete {
			err = batch.Delete([]byte(w.Key), nil)
		} else {
			err = batch.Set([]byte(w.Key), w.Value, nil)
		}
		if err != nil {
			return fmt.Errorf("write %d of %d: %w", i+1, len(writes), err)
		}
	}
	return e.wrote(batch.Commit(pebble.Sync))
}

// whole returns the error of the first failed write.
func (e *lsm) whole() error {
	if err := e.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// wrote judges a write. The library returns nil after a fatal error: only its log
// has the error.
func (e *lsm) wrote(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: writing pebble in %s: %w", engine.ErrBroken, e.dir, err)
		e.broken.CompareAndSwap(nil, &err)
	}
	e.syncs.Add(1)
	return e.whole()
}

// Gather implements engine.Engine.
func (e *lsm) Gather(keys []string, visit func(i int, value []byte) error) error {
	for i, key := range keys {
		value, closer, err := e.db.Get([]byte(key))
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading pebble in %s: %w", e.dir, err)
		}
		if err := errors.Join(visit(i, value), closer.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Each implements engine.Engine.
func (e *lsm) Each(visit func(key string, value []byte) error) (err error) {
	it, err := e.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("reading pebble in %s: %w", e.dir, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("reading pebble in %s: %w", e.dir, err)
		}
		if err := visit(string(it.Key()), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// DiskBytes implements engine.Engine.
func (e *lsm) DiskBytes() (bytes int64) {
	// The sum leaves out files deleted meanwhile.
	_ = filepath.WalkDir(e.dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if info, gone := entry.Info(); gone == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// counted returns the bytes of logs, flushes and compactions that the library counts, and
// the blocks written again by syncs. Without these blocks the count is far too low for small
// values. Writes that share a sync count as several.
func (e *lsm) counted() int64 {
	m := e.db.Metrics()
	n := m.WAL.BytesWritten
	for i := range m.Levels {
		l := &m.Levels[i]
		n += l.TableBytesFlushed + l.TableBytesCompacted + l.BlobBytesFlushed + l.BlobBytesCompacted
	}
	return int64(n) + e.syncs.Load()*pebbleBlock
}

// WrittenBytes implements engine.Counter.
func (e *lsm) WrittenBytes() int64 {
	now := e.counted() - e.opened
	for {
		told := e.told.Load()
		if now <= told {
			return told
		}
		if e.told.CompareAndSwap(told, now) {
			return now
		}
	}
}

// Close implements engine.Engine.
func (e *lsm) Close() error {
	if err := errors.Join(e.db.Close(), e.lock.Close()); err != nil {
		return fmt.Errorf("closing pebble in %s: %w", e.dir, err)
	}
	return nil
}
