package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
)

// identityIn reads the identity of data that nobody has open.
func identityIn(t *testing.T, dir string) *storev1.Identity {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	id := new(storev1.Identity)
	err = db.View(func(tx *bolt.Tx) error {
		return proto.Unmarshal(tx.Bucket([]byte("identity")).Get([]byte("identity")), id)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestVersionOfData: new data has the newest version of its build. Data keeps its version
// until another is stored, and in the first version it has no word of versions.
func TestVersionOfData(t *testing.T) {
	o := options(t.TempDir())
	o.Versions = versions.Of(1)
	closed(t, open(t, o))
	if id := identityIn(t, o.Dir); id.GetFormat() != 4 || id.GetVersion() != 0 {
		t.Errorf("the first version: %v", id)
	}
	o.Versions = versions.Of(2)
	s := open(t, o)
	if v := load(t, s).Version; v != 1 {
		t.Errorf("version %d", v)
	}
	closed(t, s)
	if id := identityIn(t, o.Dir); id.GetFormat() != 4 || id.GetVersion() != 0 {
		t.Errorf("an upgrade alone has changed the data to %v", id)
	}
	s = open(t, o)
	if err := s.Commit(&stored.Records{Version: 2}); err != nil {
		t.Fatal(err)
	}
	if v := load(t, s).Version; v != 2 {
		t.Errorf("version %d after 2 was stored", v)
	}
	closed(t, s)
	if id := identityIn(t, o.Dir); id.GetFormat() != 5 || id.GetVersion() != 2 {
		t.Errorf("the second version: %v", id)
	}
	o.Versions = versions.Of(3)
	s = open(t, o)
	if v := load(t, s).Version; v != 2 {
		t.Errorf("version %d", v)
	}
	closed(t, s)
}

// TestVersionBeforeTheLog: a site that was cut off right after a raise has data that a
// build of the version before refuses, though the log was never carried over. The refusal
// changes nothing.
func TestVersionBeforeTheLog(t *testing.T) {
	o := options(t.TempDir())
	o.Versions = versions.Of(1)
	closed(t, open(t, o))
	o.Versions = versions.Of(2)
	s := open(t, o)
	r := full()
	r.Version = 2
	if err := s.Commit(r); err != nil {
		t.Fatal(err)
	}
	// A copy, as it was on the disk at that moment.
	cut := options(t.TempDir())
	if err := os.CopyFS(cut.Dir, os.DirFS(o.Dir)); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	before := contents(t, cut.Dir)
	cut.Versions = versions.Of(1)
	if _, err := store.Open(cut); !errors.Is(err, store.ErrVersion) {
		t.Fatalf("a build of version 1 opens data of version 2: %v", err)
	}
	for name, was := range before {
		if now := contents(t, cut.Dir)[name]; now != was {
			t.Errorf("a refused start has changed %s", name)
		}
	}
	cut.Versions = versions.Of(2)
	s = open(t, cut)
	if got := load(t, s); got.Version != 2 || got.Commits != r.Commits {
		t.Errorf("got version %d, %d commits", got.Version, got.Commits)
	}
	closed(t, s)
}

// contents reads the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}
