// Package store keeps a site's state: a log of its commits and, behind it, a bbolt
// file. It does not decide: it writes the core's records, with one synced append a
// batch (package journal). It refuses data that belongs to another site or cluster, or
// lacks an acknowledged part.
//
// The data directory holds
//
//	site.db                     the base: all commits through a number, which it tells
//	journal-0000000000000107    the log: the commits from 263 (hexadecimal 107) on
//	journal-spare               a file of the log that is to be used again
//	rescued                     a mark: what the data holds was given back, see Hold
//
// The files belong together: a copy must include all of them, of a site that does not
// run. After a stop that was not cut off the log is empty. The log is carried over to
// the base in the background, once it has grown by Options.CheckpointBytes or is
// Options.CheckpointEvery old, and at Open and Close.
//
// Backup writes the state at one commit, of a store that goes on committing, as a file of
// package backup. Restore makes a directory of that file.
//
// The base's buckets:
//
//	identity   whose data this is, the version of its cluster, and the member set;
//	           written at bootstrap, and when the version is raised
//	journal    the number of the last commit that the base holds
//	guard      which data this is, the number of the last transaction of the core, and
//	           the marks of other members' data
//	books      one small value an entity
//	entities   one value an entity; written when its sequence moves
//	catalogue  the catalogue's sequence, and changes: the last changes of it
//	requests   one block of request records a commit, by sequence: appended at
//	           one end, forgotten in bulk at the other, most before they get here
//	claims     one value a request that other sites have to be asked about, and
//	leases     one value a lease, both by number: new ones join at the end
//	forecasts  one value of some KB an entity with demand; written once a minute
package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/journal"
)

// Errors of Open. They wrap more detail.
var (
	// ErrInUse: another process holds the data directory.
	ErrInUse = errors.New("the data directory is in use by another process")
	// ErrForeign: the data directory belongs to another site or cluster.
	ErrForeign = errors.New("the data directory belongs to another site or cluster")
	// errFormat: the data was written by a version that this version cannot read, or is
	// damaged.
	errFormat = errors.New("the data has an unknown format")
	// ErrNoMembers: the directory is empty and no member set was given.
	ErrNoMembers = errors.New("a new data directory needs the member set of the cluster")
	// errVersion: the build does not speak the version of the data.
	errVersion = errors.New("the data is of another version")
	// ErrMembers: the directory holds another member set than Options.Members.
	ErrMembers = errors.New("the member set differs from the one that was fixed at bootstrap")
	// ErrDamaged: an acknowledged part of the log is missing or cannot be read. A
	// [journal.DamageError] says where.
	ErrDamaged = journal.ErrDamaged
)

const (
	// formatVersioned is the format of data that has the version of its cluster in its
	// identity. Data of the first version has formatFirst. Data without a log has
	// formatNoLog, and gets a log; data in which no entity stands below another may have
	// formatFlat.
	formatVersioned = 5
	formatFirst     = 4
	formatFlat      = 3
	formatNoLog     = 2

	fileName = "site.db"
)

// The buckets. Their numbers stand in logs.
const (
	bucketIdentity journal.Bucket = iota + 1
	bucketGuard
	bucketBooks
	bucketEntities
	bucketCatalogue
	bucketChanges
	bucketRequests
	bucketForecasts
	bucketClaims
	bucketLeases
)

var (
	keyIdentity  = []byte("identity")
	keyMembers   = []byte("members")
	keyCatalogue = []byte("catalogue")

	// Keys of bucketGuard. The key of a member's mark is prefixMember and the member's
	// name.
	keyIncarnation = []byte("incarnation")
	keyCommits     = []byte("commits")
	keyClock       = []byte("clock")
	prefixMember   = []byte("of ")
)

// Options name the data and its owner.
type Options struct {
	// Dir is the data directory; it is made if it does not exist.
	Dir string
	// Cluster and Site are the names that the directory must belong to; a new directory
	// will belong to them.
	Cluster string
	Site    core.SiteID
	// Members is the member set that bootstraps a new directory. For an existing
	// directory it may be empty, or must be the same set.
	Members []core.SiteID
	// Join has a new directory without Members join a cluster.
	Join bool
	// Versions are the versions that the build speaks; zero: [versions.Own]. New data gets
	// the newest.
	Versions versions.Range
	// Incarnation names a new directory's data for ever; 0 for a random name. An
	// existing directory has its own.
	Incarnation message.Incarnation
	// Begun is the version of the cluster that new data begins with; 0: the newest of
	// Versions.
	Begun versions.Version

	// CheckpointBytes is the length at which the log is carried over to the base; 0: 64
	// MiB. Commits wait when the log is four times as long. A restart after a crash
	// reads the rest of the log.
	CheckpointBytes int64
	// ChunkBytes is about how many bytes a transaction of the base writes; 0: 256 KiB,
	// and 16 MiB at Open.
	ChunkBytes int
	// CheckpointEvery is the longest time between two checkpoints; 0: 1 minute.
	CheckpointEvery time.Duration
	// BackupLog is the length of the log at which a backup ends, as no checkpoint is made
	// meanwhile, and BackupTime how long a backup may read the base; 0: twice
	// CheckpointBytes, 10 minutes.
	BackupLog  int64
	BackupTime time.Duration

	// Over, if set, returns the log of the site that stands over the log of the directory:
	// a replicated one, whose commits the directory's log follows. If the site is to run on
	// it, all commits are in the base when Over returns. The directory is marked
	// as a node's, and not opened without Over again.
	Over func(local *journal.Journal) (journal.Log, error)
}

func (o Options) withDefaults() Options {
	o.Versions = cmp.Or(o.Versions, versions.Own())
	o.CheckpointBytes = cmp.Or(o.CheckpointBytes, 64<<20)
	o.CheckpointEvery = cmp.Or(o.CheckpointEvery, time.Minute)
	o.BackupLog = cmp.Or(o.BackupLog, 2*o.CheckpointBytes)
	o.BackupTime = cmp.Or(o.BackupTime, 10*time.Minute)
	return o
}

// Members is a durable member set. Version 0 is of a site that joins: it names itself
// alone.
type Members struct {
	// Version counts the sets; the first is 1.
	Version uint64
	// Sites are sorted.
	Sites []core.SiteID
}

// Store is an open data directory. Commit may not be called concurrently with
// itself or Close.
type Store struct {
	options Options
	journal journal.Log
	base    journal.Base
	members Members
	// incarnation names the data.
	incarnation message.Incarnation
	// loaded lets go of the pages of the base that were read.
	loaded func() error
	// close lets go of the base.
	close func() error
	// file is the base as a file; nil if it is none.
	file *boltBase

	// batch, key and packed are reused from commit to commit.
	batch       journal.Batch
	key, packed []byte

	checkpoints checkpoints
	images      images
}

// Open opens or bootstraps a data directory and locks it until Close. Its errors wrap
// this package's Err values where they apply.
func Open(o Options) (*Store, error) {
	return open(o, func(b journal.Base) journal.Base { return b })
}

// open is Open on the base that wrap returns.
func open(o Options, wrap func(journal.Base) journal.Base) (*Store, error) {
	path := filepath.Join(o.Dir, fileName)
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew && len(o.Members) == 0 && !o.Join {
		return nil, ErrNoMembers
	}
	if err := dirs.Make(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	if node, err := IsNode(o.Dir); err != nil {
		return nil, err
	} else if node && o.Over == nil {
		return nil, fmt.Errorf("opening the data of %s: %w", path, ErrNode)
	}
	if marked, err := Rescued(o.Dir); err != nil {
		return nil, err
	} else if marked {
		return nil, fmt.Errorf("opening the data of %s: %w", path, ErrRescued)
	}
	o = o.withDefaults()
	if isNew {
		if err := create(path, &o); err != nil {
			return nil, err
		}
	}
	b, err := openBase(path)
	if err != nil {
		return nil, err
	}
	if !b.hasIdentity {
		if err := b.adopt(path, &o); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	s, err := openOn(journal.OSDir(o.Dir), wrap(b), o, false)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the data of %s: %w", path, err), b.Close())
	}
	s.file, s.close, s.loaded = b, b.Close, func() error { return dropPages(b.db) }
	s.checkpoints.start(s)
	return s, nil
}

// OpenOn opens a store on a given log and base, and bootstraps it if the base is empty.
// The store has no goroutine: Step carries the log over, and so does a Commit that
// would have to wait.
func OpenOn(dir journal.Dir, base journal.Base, o Options) (*Store, error) {
	isNew := true
	err := base.Each(bucketIdentity, func([]byte, []byte) error { isNew = false; return nil })
	if err != nil {
		return nil, fmt.Errorf("reading whose data it is: %w", err)
	}
	s, err := openOn(dir, base, o, isNew)
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	return s, nil
}

func nothing() error { return nil }

func openOn(dir journal.Dir, base journal.Base, o Options, isNew bool) (*Store, error) {
	o = o.withDefaults()
	s := &Store{options: o, base: base, close: nothing, loaded: nothing}
	var jo journal.Options
	var err error
	if isNew {
		s.members, s.incarnation, jo.First, err = bootstrap(&o)
	} else {
		s.members, s.incarnation, jo.First, err = claim(base, &o)
	}
	if err != nil {
		return nil, err
	}
	jo.Owner, jo.ChunkBytes, jo.ReplayBytes = uint64(s.incarnation), o.ChunkBytes, o.ChunkBytes
	local, err := journal.Open(dir, base, jo)
	if errors.Is(err, journal.ErrForeign) {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if err != nil {
		return nil, err
	}
	s.journal = local
	if o.Over != nil {
		if s.journal, err = o.Over(local); err != nil {
			return nil, errors.Join(err, local.Close())
		}
		if _, _, _, err := claim(base, &o); err != nil {
			return nil, errors.Join(err, s.journal.Close())
		}
	}
	if isNew || len(jo.First) == 0 {
		return s, nil
	}
	// Data that has a log already gets the later format before any commit.
	if err := base.Apply(jo.First, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the format: %w", err), s.journal.Close())
	}
	return s, nil
}

// Members returns the durable member set.
func (s *Store) Members() Members { return s.members }

// Incarnation returns the name of the data.
func (s *Store) Incarnation() message.Incarnation { return s.incarnation }

// Close ends a backup, carries the log over and lets go of the directory. No commit may
// be under way.
// After a failure it carries nothing over: the log has it.
func (s *Store) Close() error {
	s.images.close()
	err := s.checkpoints.finish(s)
	if err := errors.Join(err, s.journal.Close(), s.close()); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

func sequenceKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
