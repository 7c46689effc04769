package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/samya-db/samya/internal/boltfile"
	"github.com/samya-db/samya/site/journal"
)

// bucketNames are the names of buckets in a bbolt file.
var bucketNames = map[journal.Bucket][]byte{
	bucketIdentity: []byte("identity"), bucketGuard: []byte("guard"), bucketBooks: []byte("books"),
	bucketEntities: []byte("entities"), bucketCatalogue: []byte("catalogue"), bucketChanges: []byte("changes"),
	bucketRequests: []byte("requests"), bucketForecasts: []byte("forecasts"), bucketClaims: []byte("claims"),
	bucketLeases: []byte("leases"),
}

var (
	// nameJournal is the bucket of the log's own records, keyThrough the number of the
	// last commit that the file holds.
	nameJournal = []byte("journal")
	keyThrough  = []byte("through")
)

// boltBase is a bbolt file as the base of a log.
type boltBase struct {
	db *bolt.DB
	// hasIdentity is set once the file was bootstrapped.
	hasIdentity bool
	// settled is set once a transaction of this process was synced.
	settled bool
}

var _ journal.Base = (*boltBase)(nil)

// openBase opens a file, or makes it, and locks it.
func openBase(path string) (*boltBase, error) {
	if err := whole(path); err != nil {
		return nil, opening(path, err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockPatience,
		// The list of free pages is rebuilt at start instead of being written
		// with every transaction.
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
	})
	if err != nil {
		return nil, opening(path, err)
	}
	b := &boltBase{db: db}
	// To find the free pages, bbolt has read all others.
	if err := errors.Join(b.check(), dropPages(db)); err != nil {
		return nil, errors.Join(opening(path, err), db.Close())
	}
	return b, nil
}

// opening returns the error for a file that could not be opened.
func opening(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("opening %s: %w", path, ErrInUse)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("opening %s: %w: %w", path, errFormat, err)
	default:
		return fmt.Errorf("opening %s: %w", path, err)
	}
}

// whole refuses a file that was cut off or is damaged. bbolt maps the file into memory
// and trusts it: it would panic, or the system would end the process. Nobody else
// writes to the file meanwhile, as bbolt has locked it to read.
func whole(path string) (err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil // bbolt makes it
	}
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err = boltfile.Check(path); errors.Is(err, boltfile.ErrDamaged) {
		err = fmt.Errorf("%w: %w", errFormat, err)
	}
	return err
}

// check finds out whether the file was bootstrapped, and if so whether all buckets
// exist.
func (b *boltBase) check() error {
	return b.db.View(func(tx *bolt.Tx) error {
		b.hasIdentity = tx.Bucket(bucketNames[bucketIdentity]) != nil
		for id, name := range bucketNames {
			// A site can do without forecasts.
			if b.hasIdentity && tx.Bucket(name) == nil && id != bucketForecasts {
				return fmt.Errorf("%w: no bucket %q", errFormat, name)
			}
		}
		return nil
	})
}

// Close lets go of the file.
func (b *boltBase) Close() error { return b.db.Close() }

// Through implements journal.Base.
func (b *boltBase) Through() (n journal.Number, known bool, err error) {
	err = b.view(func(tx *bolt.Tx) error {
		j := tx.Bucket(nameJournal)
		if j == nil {
			return nil
		}
		raw := j.Get(keyThrough)
		if len(raw) != 8 {
			return fmt.Errorf("%w: number of the last commit: %w", errFormat, errNumber)
		}
		n, known = journal.Number(binary.BigEndian.Uint64(raw)), true
		return nil
	})
	return n, known, err
}

// readAhead is how many bytes of values Each reads before it lets go of their pages.
const readAhead = 8 << 20

// Each implements journal.Base. It keeps few pages of the file in the memory of the
// process, however large the bucket is.
func (b *boltBase) Each(bucket journal.Bucket, f func(key, value []byte) error) error {
	return b.view(func(tx *bolt.Tx) error {
		found := tx.Bucket(bucketNames[bucket])
		if found == nil {
			return nil
		}
		read := 0
		return found.ForEach(func(k, v []byte) error {
			if read += len(k) + len(v); read > readAhead {
				read = 0
				dropPagesOf(tx)
			}
			return f(k, v)
		})
	})
}

// view runs a read-only transaction, and names the file in errors.
func (b *boltBase) view(read func(*bolt.Tx) error) error {
	if err := b.db.View(read); err != nil {
		return fmt.Errorf("reading %s: %w", b.db.Path(), err)
	}
	return nil
}

// deleteAtOnce bounds the keys that a transaction deletes below a given key.
const deleteAtOnce = 4096

// Apply implements journal.Base. A leading DeleteBelow may take several transactions;
// all else is a single transaction.
func (b *boltBase) Apply(ops []journal.Op, through *journal.Number) error {
	if err := b.settle(); err != nil {
		return err
	}
	for len(ops) > 0 && ops[0].Kind == journal.DeleteBelow {
		more := false
		err := b.db.Update(func(tx *bolt.Tx) error {
			bucket, err := bucketIn(tx, ops[0].Bucket)
			if err != nil {
				return err
			}
			more, err = deleteBelow(bucket, ops[0].Key, deleteAtOnce)
			return err
		})
		if err != nil {
			return fmt.Errorf("deleting from %q: %w", bucketNames[ops[0].Bucket], err)
		}
		if !more {
			ops = ops[1:]
		}
	}
	if len(ops) == 0 && through == nil {
		return nil
	}
	return b.db.Update(func(tx *bolt.Tx) error {
		for i := range ops {
			if err := apply(tx, &ops[i]); err != nil {
				return fmt.Errorf("writing to %q: %w", bucketNames[ops[i].Bucket], err)
			}
		}
		if through == nil {
			return nil
		}
		j, err := tx.CreateBucketIfNotExists(nameJournal)
		if err == nil {
			err = j.Put(keyThrough, sequenceKey(uint64(*through)))
		}
		if err != nil {
			return fmt.Errorf("storing the number of the last commit: %w", err)
		}
		return nil
	})
}

// settle makes the state found by this process durable, before the process writes
// anything else. The sync of the previous process's last transaction may have failed:
// then the system's cache has a meta page that the disk does not have. All other pages
// of that transaction are on the disk: bbolt writes the meta page only after their sync
// has succeeded, and every failure ends the process. So it is enough to write a meta
// page with the same content, and to sync it: a transaction that changes nothing. Until
// then the disk may count on pages of an older state, which are free in the state
// found. The first write to them would spoil the state that a loss of power brings
// back.
func (b *boltBase) settle() error {
	if b.settled {
		return nil
	}
	if err := b.db.Update(func(*bolt.Tx) error { return nil }); err != nil {
		return fmt.Errorf("making durable what was found: %w", err)
	}
	b.settled = true
	return nil
}

var errBucket = errors.New("there is no such bucket")

// bucketIn returns a bucket, and makes it if necessary: forecasts came later.
func bucketIn(tx *bolt.Tx, id journal.Bucket) (*bolt.Bucket, error) {
	name := bucketNames[id]
	if name == nil {
		return nil, fmt.Errorf("%w: %d", errBucket, id)
	}
	if found := tx.Bucket(name); found != nil {
		return found, nil
	}
	return tx.CreateBucket(name)
}

func apply(tx *bolt.Tx, op *journal.Op) error {
	bucket, err := bucketIn(tx, op.Bucket)
	if err != nil {
		return err
	}
	switch op.Kind {
	case journal.Put:
		if op.Bucket == bucketRequests {
			// Blocks only ever join at the end: full pages need no room for more.
			bucket.FillPercent = 0.95
		}
		return bucket.Put(op.Key, op.Value)
	case journal.Delete:
		return bucket.Delete(op.Key)
	default:
		_, err := deleteBelow(bucket, op.Key, 0)
		return err
	}
}

// deleteBelow deletes the keys below end, which stand at the front, but at most `most`
// keys; 0: all. It reports whether there may be more.
func deleteBelow(b *bolt.Bucket, end []byte, most int) (more bool, err error) {
	c := b.Cursor()
	n := 0
	for k, _ := c.First(); k != nil && bytes.Compare(k, end) < 0; k, _ = c.First() {
		if n++; most != 0 && n > most {
			return true, nil
		}
		if err := c.Delete(); err != nil {
			return false, fmt.Errorf("deleting key %x: %w", k, err)
		}
	}
	return false, nil
}

// lockPatience is how long Open waits for another process to let go, so that a
// restart need not be timed.
const lockPatience = 2 * time.Second
