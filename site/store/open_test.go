package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/samya-db/samya/internal/versions"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
)

func TestBootstrap(t *testing.T) {
	o := options(filepath.Join(t.TempDir(), "new", "data"))
	s := open(t, o)
	want := store.Members{Version: 1, Sites: []core.SiteID{"as", "eu", "us"}}
	if got := s.Members(); !reflect.DeepEqual(got, want) {
		t.Errorf("members %+v", got)
	}
	if r := load(t, s); !reflect.DeepEqual(r, stored.Restored{Incarnation: incarnation, Version: versions.Own().Newest}) {
		t.Errorf("a new store holds %+v", r)
	}
	closed(t, s)
	o.Members = nil
	s = open(t, o)
	if got := s.Members(); !reflect.DeepEqual(got, want) {
		t.Errorf("reopened: members %+v", got)
	}
	closed(t, s)
	o.Members = []core.SiteID{"eu", "us", "as", "us"}
	closed(t, open(t, o))
}

func TestOpenErrors(t *testing.T) {
	fill := func(t *testing.T, dir string) {
		t.Helper()
		closed(t, open(t, options(dir)))
	}
	edit := func(change func(*bolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			fill(t, dir)
			db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	garbage := func(size int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			raw := bytes.Repeat([]byte("not a database. "), size/16+1)[:size]
			if err := os.WriteFile(filepath.Join(dir, "site.db"), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	identity := func(id *storev1.Identity) func(*testing.T, string) {
		raw, err := proto.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		return edit(func(tx *bolt.Tx) error { return tx.Bucket([]byte("identity")).Put([]byte("identity"), raw) })
	}
	for name, tc := range map[string]struct {
		before func(*testing.T, string)
		change func(*store.Options)
		want   error
		says   string
	}{
		"no members":    {nil, func(o *store.Options) { o.Members = nil }, store.ErrNoMembers, ""},
		"not a member":  {nil, func(o *store.Options) { o.Site = "sa" }, nil, `"sa"`},
		"other cluster": {fill, func(o *store.Options) { o.Cluster = "test" }, store.ErrForeign, `"test"`},
		"other site":    {fill, func(o *store.Options) { o.Site = "eu" }, store.ErrForeign, `"eu"`},
		"fewer members": {fill, func(o *store.Options) { o.Members = o.Members[:2] }, store.ErrMembers, "as"},
		"other members": {fill, func(o *store.Options) { o.Members = []core.SiteID{"us", "eu", "sa"} }, store.ErrMembers, "sa"},
		"short garbage": {garbage(100), nil, store.ErrFormat, ""},
		"a page":        {garbage(4096), nil, nil, "too small"},
		"long garbage":  {garbage(100_000), nil, store.ErrFormat, ""},
		"cut off": {func(t *testing.T, dir string) {
			t.Helper()
			fill(t, dir)
			if err := os.Truncate(filepath.Join(dir, "site.db"), 3*int64(os.Getpagesize())); err != nil {
				t.Fatal(err)
			}
		}, nil, store.ErrFormat, "bytes of the"},
		"a bucket missing": {edit(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("books")) }), nil, store.ErrFormat, "books"},
		"damaged identity": {edit(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("identity")).Put([]byte("identity"), []byte{0xff})
		}), nil, store.ErrFormat, "identity"},
		"damaged members": {edit(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("identity")).Put([]byte("members"), []byte{0xff})
		}), nil, store.ErrFormat, "members"},
		"no identity":    {edit(func(tx *bolt.Tx) error { return tx.Bucket([]byte("identity")).Delete([]byte("identity")) }), nil, store.ErrFormat, ""},
		"no incarnation": {edit(func(tx *bolt.Tx) error { return tx.Bucket([]byte("guard")).Delete([]byte("incarnation")) }), nil, store.ErrFormat, "incarnation"},
		"a long number of the last commit": {edit(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("journal")).Put([]byte("through"), make([]byte, 9))
		}), nil, store.ErrFormat, "number of the last commit"},
		"later format":                {identity(&storev1.Identity{Format: 6, Version: 2, Cluster: "prod", Site: "us"}), nil, store.ErrFormat, "format 6"},
		"a format without a version":  {identity(&storev1.Identity{Format: 5, Cluster: "prod", Site: "us"}), nil, store.ErrFormat, "format 5 of version 0"},
		"a first format of version 2": {identity(&storev1.Identity{Format: 4, Version: 2, Cluster: "prod", Site: "us"}), nil, store.ErrFormat, "format 4 of version 2"},
		"a build that is too old": {
			fill, func(o *store.Options) { o.Versions = versions.Of(1) }, store.ErrVersion,
			"the data is of version 2, this build speaks version 1 alone: the build is too old; start a build of version 2 or 3",
		},
		"a build that is too new": {
			fill, func(o *store.Options) { o.Versions = versions.Of(4) }, store.ErrVersion,
			"the data is of version 2, this build speaks versions 3 to 4: the build is too new; start a build of version 2, raise the version of the cluster, then upgrade",
		},
		"a build that is too new for the first version": {
			identity(&storev1.Identity{Format: 4, Cluster: "prod", Site: "us"}), func(o *store.Options) { o.Versions = versions.Of(3) }, store.ErrVersion,
			"the data is of version 1, this build speaks versions 2 to 3",
		},
		"no log": {func(t *testing.T, dir string) {
			t.Helper()
			fill(t, dir)
			removeLog(t, dir)
		}, nil, store.ErrDamaged, "journal-0000000000000001"},
		"the log of other data": {func(t *testing.T, dir string) {
			t.Helper()
			fill(t, dir)
			removeLog(t, dir)
			other := options(t.TempDir())
			other.Incarnation = 7
			closed(t, open(t, other))
			if err := os.CopyFS(dir, logOf(t, other.Dir)); err != nil {
				t.Fatal(err)
			}
		}, nil, store.ErrForeign, "journal-0000000000000001"},
		"a log alone": {func(t *testing.T, dir string) {
			t.Helper()
			s := open(t, options(dir))
			if err := s.Commit(full()); err != nil {
				t.Fatal(err)
			}
			closed(t, s)
			if err := os.Remove(filepath.Join(dir, "site.db")); err != nil {
				t.Fatal(err)
			}
		}, nil, store.ErrDamaged, "site.db is missing"},
		"a file in the way": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func(o *store.Options) { o.Dir = filepath.Join(o.Dir, "x") }, nil, "data directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.before != nil {
				tc.before(t, dir)
			}
			o := options(dir)
			if tc.change != nil {
				tc.change(&o)
			}
			s, err := store.Open(o)
			if err == nil {
				closed(t, s)
				t.Fatal("no error")
			}
			if tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v that says %s", err, tc.want, tc.says)
			}
		})
	}
}

func isLog(name string) bool { return strings.HasPrefix(name, "journal-") }

func removeLog(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if isLog(f.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// logOf is the log of a directory.
func logOf(t *testing.T, dir string) fs.FS {
	t.Helper()
	files := make(fstest.MapFS)
	entries, err := os.ReadDir(dir)
	for _, f := range entries {
		if isLog(f.Name()) {
			b, failed := os.ReadFile(filepath.Join(dir, f.Name()))
			files[f.Name()], err = &fstest.MapFile{Data: b, Mode: 0o600}, errors.Join(err, failed)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRefusedDataIsUntouched: a site that is refused a directory leaves it to its owner.
func TestRefusedDataIsUntouched(t *testing.T) {
	dir := t.TempDir()
	s := open(t, options(dir))
	if err := s.Commit(&stored.Records{Books: []stored.Books{{Name: "e", Generation: 1, Left: 7}}}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	o := options(dir)
	o.Site = "eu"
	if _, err := store.Open(o); !errors.Is(err, store.ErrForeign) {
		t.Fatal(err)
	}
	s = open(t, options(dir))
	if r := load(t, s); len(r.Books) != 1 || r.Books[0].Left != 7 {
		t.Errorf("%+v", r)
	}
	closed(t, s)
}

func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, options(dir))
		if _, err := store.Open(options(dir)); !errors.Is(err, store.ErrInUse) {
			t.Errorf("opened twice: %v", err)
		}
		closed(t, s)
		closed(t, open(t, options(dir)))
	})
}

// TestUpgrade takes up data that was written without a log, also if the first start was
// cut off before it was done. It also takes up data with a log and without trees.
func TestUpgrade(t *testing.T) {
	for name, tc := range map[string]struct {
		format     uint32
		noLog, cut bool
	}{
		"without a log":                  {2, true, false},
		"after a start that was cut off": {2, true, true},
		"without trees":                  {3, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, options(dir))
			if err := s.Commit(full()); err != nil {
				t.Fatal(err)
			}
			want := load(t, s)
			want.Version = versions.First
			closed(t, s)
			if tc.noLog {
				removeLog(t, dir)
			}
			if tc.cut {
				// A first start that was cut off leaves the log of an empty directory.
				o := options(t.TempDir())
				closed(t, open(t, o))
				if err := os.CopyFS(dir, logOf(t, o.Dir)); err != nil {
					t.Fatal(err)
				}
			}
			db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(func(tx *bolt.Tx) error {
				raw, err := proto.Marshal(&storev1.Identity{Format: tc.format, Cluster: "prod", Site: "us"})
				if tc.noLog {
					err = errors.Join(err, tx.DeleteBucket([]byte("journal")))
				}
				return errors.Join(err, tx.Bucket([]byte("identity")).Put([]byte("identity"), raw))
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			s = open(t, options(dir))
			if got := load(t, s); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			if err := s.Commit(&stored.Records{Commits: 13}); err != nil {
				t.Fatal(err)
			}
			closed(t, s)
			if s = open(t, options(dir)); load(t, s).Commits != 13 {
				t.Error("what was committed after the upgrade is lost")
			}
			closed(t, s)
			db, err = bolt.Open(filepath.Join(dir, "site.db"), 0o600, &bolt.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			err = db.View(func(tx *bolt.Tx) error {
				var id storev1.Identity
				err := proto.Unmarshal(tx.Bucket([]byte("identity")).Get([]byte("identity")), &id)
				if id.GetFormat() != 4 {
					err = errors.Join(err, fmt.Errorf("the format is %d", id.GetFormat()))
				}
				return err
			})
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestEmptyFile: a start that finds a file with nothing in it makes the database, which
// later starts find. Where there are commits in the log the data is gone instead.
func TestEmptyFile(t *testing.T) {
	dir := t.TempDir()
	empty := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "site.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty()
	for n := range message.Commits(3) {
		s := open(t, options(dir))
		if got := s.Members().Sites; len(got) != 3 || load(t, s).Commits != n {
			t.Errorf("members %v, %d commits, want %d", got, load(t, s).Commits, n)
		}
		commit(t, s, uint64(n)+1)
		closed(t, s)
	}
	empty()
	if _, err := store.Open(options(dir)); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a log without its base: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "site.db")); err != nil || len(b) > 0 && bytes.Contains(b, []byte("prod")) {
		t.Errorf("the base that was refused is bootstrapped: %v", err)
	}
}

// TestWithoutForecasts: data from before there were forecasts is taken up, and gets them.
func TestWithoutForecasts(t *testing.T) {
	dir := t.TempDir()
	closed(t, open(t, options(dir)))
	db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("forecasts")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s := open(t, options(dir))
	if r := load(t, s); len(r.Forecasts) != 0 {
		t.Errorf("forecasts %+v", r.Forecasts)
	}
	if err := s.Commit(full()); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	s = open(t, options(dir))
	if r := load(t, s); !reflect.DeepEqual(r.Forecasts, full().Forecasts) {
		t.Errorf("forecasts %+v", r.Forecasts)
	}
	closed(t, s)
}
