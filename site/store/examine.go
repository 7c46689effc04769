package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/versions"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

// Errors that an examination tells beside those of Open.
var (
	// ErrNoBase: the directory holds no site.db, or an empty one.
	ErrNoBase = errors.New("there is no base of the data")
	// ErrUnknownFormat: the data was written by a version that this version cannot read.
	ErrUnknownFormat = errors.New("the data has a format that this version cannot read")
)

// Examination is what a data directory holds. What could not be read is empty.
type Examination struct {
	// Cluster, Site and Members are whose data it is, Format its format.
	Cluster string
	Site    core.SiteID
	Members Members
	Format  uint32
	// Incarnation names the data; Restored is what a start would find.
	Incarnation message.Incarnation
	Restored    stored.Restored
	// BaseBytes is the length of site.db.
	BaseBytes int64
	// Log are the files of the log.
	Log []journal.Segment
	// Leftovers are files that a start cut off has left.
	Leftovers []string
	// Refused is why a start would be refused; nil if it would not.
	Refused error
}

// Examine reads the data directory of a site that does not run, and starts on it as Open
// and Load do, without a change of it: what a start would write stays in memory, at most
// about the length of the log. While it reads, no site can start on the directory. The
// error is ErrInUse if a site runs on it, or that of reading the directory.
func Examine(dir string) (Examination, error) {
	var x Examination
	entries, err := os.ReadDir(dir)
	if err != nil {
		return x, fmt.Errorf("reading the data directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), fileName+".new-") || journal.Leftover(e.Name()) {
			x.Leftovers = append(x.Leftovers, e.Name())
		}
	}
	path := filepath.Join(dir, fileName)
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		x.Refused = fmt.Errorf("%w: %s is missing", ErrNoBase, path)
	case err != nil:
		return x, fmt.Errorf("looking at %s: %w", path, err)
	case info.Size() == 0:
		x.Refused = fmt.Errorf("%w: %s is empty", ErrNoBase, path)
	default:
		x.BaseBytes = info.Size()
		if x.Refused, err = x.base(dir, path); err != nil {
			return x, err
		}
	}
	if x.Log, err = journal.Survey(journal.NewShadowDir(dir)); err != nil {
		return x, fmt.Errorf("reading the log: %w", err)
	}
	return x, nil
}

// base reads the base and starts on it. Refused is why a start would be refused.
func (x *Examination) base(dir, path string) (refused, err error) {
	if err := whole(path); err != nil {
		err = opening(path, err)
		if errors.Is(err, ErrInUse) || errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		return err, nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, ReadOnly: true})
	if err != nil {
		return nil, opening(path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b := &boltBase{db: db}
	if refused = b.check(); refused != nil {
		return refused, nil
	}
	if !b.hasIdentity {
		return fmt.Errorf("%w: %s holds no data", ErrNoBase, path), nil
	}
	return x.start(journal.NewShadowDir(dir), newShadowBase(b)), nil
}

// start starts on views of the log and the base.
func (x *Examination) start(dir journal.Dir, base journal.Base) (refused error) {
	var identity storev1.Identity
	err := base.Each(bucketIdentity, func(k, v []byte) error {
		if string(k) != string(keyIdentity) {
			return nil
		}
		return proto.Unmarshal(v, &identity)
	})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errFormat, keyIdentity, err)
	}
	x.Cluster, x.Site, x.Format = identity.GetCluster(), core.SiteID(identity.GetSite()), identity.GetFormat()
	if x.Format < formatNoLog || x.Format > formatVersioned {
		return fmt.Errorf("%w: format %d, known are %d to %d", ErrUnknownFormat, x.Format, formatNoLog, formatVersioned)
	}
	o := Options{Cluster: x.Cluster, Site: x.Site, Versions: versions.Own()}
	if x.Members, x.Incarnation, _, err = claim(base, &o); err != nil {
		return err
	}
	s, err := openOn(dir, base, o, false)
	if err != nil {
		return err
	}
	if x.Restored, err = s.Load(); err == nil {
		err = holdBlocks(base, &x.Restored)
	}
	if err = errors.Join(err, s.journal.Close()); err != nil {
		x.Restored = stored.Restored{}
	}
	return err
}
