// Package store keeps one site's state in a bbolt file. It refuses to decide:
// it writes what the core hands it, in one synced transaction a batch, and it
// refuses data that belongs to another site or cluster.
//
// The file's buckets, and what a commit costs in them:
//
//	identity   whose data this is, and the member set; written at bootstrap
//	guard      which data this is, the number of the last commit, and the marks
//	           of other members' data; so small that it is a part of the root page
//	books      one small value an entity; one leaf page per hot entity
//	entities   one value an entity; written when its sequence moves
//	catalogue  the catalogue's sequence and its last changes
//	requests   one block of request records a commit, by sequence: appended at
//	           one end, forgotten in bulk at the other
//	claims     one value a request that other sites have to be asked about, and
//	leases     one value a lease, both by number: new ones join at the end
//	forecasts  one value of some KB an entity with demand; written once a minute
package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
)

// Errors of Open. They wrap more detail.
var (
	// ErrInUse: another process holds the data directory.
	ErrInUse = errors.New("the data directory is in use by another process")
	// ErrForeign: the data directory belongs to another site or cluster.
	ErrForeign = errors.New("the data directory belongs to another site or cluster")
	// ErrFormat: the data was written by a version this one cannot read.
	ErrFormat = errors.New("the data has an unknown format")
	// ErrNoMembers: the directory is empty and no member set was given.
	ErrNoMembers = errors.New("a new data directory needs the member set of the cluster")
	// ErrMembers: the directory holds another member set than was given.
	ErrMembers = errors.New("the member set differs from the one that was fixed at bootstrap")
)

const (
	format   = 2
	fileName = "site.db"
	// lockPatience is how long Open waits for another process to let go, so
	// that a restart need not be timed.
	lockPatience = 2 * time.Second
)

var (
	bucketIdentity  = []byte("identity")
	bucketGuard     = []byte("guard")
	bucketBooks     = []byte("books")
	bucketEntities  = []byte("entities")
	bucketCatalogue = []byte("catalogue")
	bucketChanges   = []byte("changes")
	bucketRequests  = []byte("requests")
	bucketForecasts = []byte("forecasts")
	bucketClaims    = []byte("claims")
	bucketLeases    = []byte("leases")
	buckets         = [][]byte{bucketIdentity, bucketGuard, bucketBooks, bucketEntities, bucketCatalogue, bucketChanges, bucketRequests, bucketClaims, bucketLeases}

	keyIdentity  = []byte("identity")
	keyMembers   = []byte("members")
	keyCatalogue = []byte("catalogue")

	// Keys of bucketGuard; a member's mark stands under prefixMember and its name.
	keyIncarnation = []byte("incarnation")
	keyCommits     = []byte("commits")
	prefixMember   = []byte("of ")
)

// Options say where the data is and whose it must be.
type Options struct {
	// Dir is the data directory; it is made if it does not exist.
	Dir string
	// Cluster and Site are the names the directory must belong to; a new one
	// will.
	Cluster string
	Site    core.SiteID
	// Members is the member set that a new directory is bootstrapped with. For
	// an existing one it may be empty; else it must be the same set.
	Members []core.SiteID
	// Incarnation names a new directory's data for ever; 0 for a random one. An
	// existing directory has its own.
	Incarnation core.Incarnation
}

// Members is a durable member set.
type Members struct {
	// Version counts the sets; the first is 1.
	Version uint64
	// Sites are sorted.
	Sites []core.SiteID
}

// Store is an open data directory. Commit may not be called concurrently.
type Store struct {
	db      *bolt.DB
	members Members
	// scratch is reused from commit to commit.
	scratch, packed []byte
	commits         [8]byte
}

// Open opens or bootstraps a data directory and locks it until Close. Its
// errors wrap the package's Err values where one applies.
func Open(o Options) (*Store, error) {
	path := filepath.Join(o.Dir, fileName)
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew && len(o.Members) == 0 {
		return nil, ErrNoMembers
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	if isNew {
		return create(path, &o)
	}
	return openFile(path, &o)
}

// openFile opens a database, or makes it.
func openFile(path string, o *Options) (*Store, error) {
	if err := whole(path); err != nil {
		return nil, opening(path, err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout: lockPatience,
		// The list of free pages is rebuilt at start instead of being written
		// at every commit: at a thousand commits a second that is the better
		// side to pay on.
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
	})
	if err != nil {
		return nil, opening(path, err)
	}
	s := &Store{db: db}
	if err := s.claim(o); err != nil {
		return nil, errors.Join(fmt.Errorf("claiming %s: %w", path, err), db.Close())
	}
	return s, nil
}

// opening says why a file could not be opened.
func opening(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("opening %s: %w", path, ErrInUse)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("opening %s: %w: %w", path, ErrFormat, err)
	default:
		return fmt.Errorf("opening %s: %w", path, err)
	}
}

// whole refuses a file that was cut off. bbolt maps it into memory: the system
// would end the process as soon as it reads behind the file's end.
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
	return db.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(path)
		if err == nil && info.Size() < tx.Size() {
			return fmt.Errorf("%w: it has %d bytes of the %d that belong to it", ErrFormat, info.Size(), tx.Size())
		}
		return err
	})
}

// claim checks that the data is this site's, or makes new data so.
func (s *Store) claim(o *Options) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		// A site can do without what would be in it.
		if _, err := tx.CreateBucketIfNotExists(bucketForecasts); err != nil {
			return fmt.Errorf("making bucket %q: %w", bucketForecasts, err)
		}
		if tx.Bucket(bucketIdentity) == nil {
			return s.bootstrap(tx, o)
		}
		for _, b := range buckets {
			if tx.Bucket(b) == nil {
				return fmt.Errorf("%w: no bucket %q", ErrFormat, b)
			}
		}
		id := tx.Bucket(bucketIdentity)
		var identity storev1.Identity
		if err := proto.Unmarshal(id.Get(keyIdentity), &identity); err != nil {
			return fmt.Errorf("%w: identity: %w", ErrFormat, err)
		}
		if identity.GetFormat() != format {
			return fmt.Errorf("%w: format %d, known is %d", ErrFormat, identity.GetFormat(), format)
		}
		if identity.GetCluster() != o.Cluster || identity.GetSite() != string(o.Site) {
			return fmt.Errorf("%w: it is of site %q of cluster %q, not site %q of cluster %q", ErrForeign,
				identity.GetSite(), identity.GetCluster(), o.Site, o.Cluster)
		}
		var members storev1.MemberSet
		if err := proto.Unmarshal(id.Get(keyMembers), &members); err != nil {
			return fmt.Errorf("%w: members: %w", ErrFormat, err)
		}
		s.members = Members{Version: members.GetVersion()}
		for _, m := range members.GetSites() {
			s.members.Sites = append(s.members.Sites, core.SiteID(m))
		}
		if given := sorted(o.Members); len(given) > 0 && s.members.Version == 1 && !slices.Equal(given, s.members.Sites) {
			return fmt.Errorf("%w: it is %v, not %v; leave the option out, it only counts for a new data directory",
				ErrMembers, s.members.Sites, given)
		}
		return nil
	})
}

func sorted(sites []core.SiteID) []core.SiteID {
	return slices.Compact(slices.Sorted(slices.Values(sites)))
}

func (s *Store) bootstrap(tx *bolt.Tx, o *Options) error {
	if len(o.Members) == 0 {
		return ErrNoMembers
	}
	members := sorted(o.Members)
	if !slices.Contains(members, o.Site) {
		return fmt.Errorf("site %q is not among the members %v", o.Site, members)
	}
	for _, b := range buckets {
		if _, err := tx.CreateBucketIfNotExists(b); err != nil {
			return fmt.Errorf("making bucket %q: %w", b, err)
		}
	}
	s.members = Members{Version: 1, Sites: members}
	set := &storev1.MemberSet{Version: 1}
	for _, m := range members {
		set.Sites = append(set.Sites, string(m))
	}
	id := tx.Bucket(bucketIdentity)
	incarnation := uint64(o.Incarnation)
	for incarnation == 0 {
		incarnation = rand.Uint64()
	}
	return errors.Join(
		tx.Bucket(bucketGuard).Put(keyIncarnation, sequenceKey(incarnation)),
		putMessage(id, keyIdentity, &storev1.Identity{Format: format, Cluster: o.Cluster, Site: string(o.Site)}),
		putMessage(id, keyMembers, set),
	)
}

func putMessage(b *bolt.Bucket, key []byte, m proto.Message) error {
	raw, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding %q: %w", key, err)
	}
	return b.Put(key, raw)
}

// Members returns the durable member set.
func (s *Store) Members() Members { return s.members }

// Close lets go of the directory. Nothing may be committing.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

func sequenceKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
