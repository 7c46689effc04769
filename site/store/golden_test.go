package store_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/internal/versions/golden"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	bolt "go.etcd.io/bbolt"
)

var update = flag.Bool("update", false, "keep a directory with all fields as test data of this build's version, unless there is one")

// The directories of each version, as builds of that version left them: full has all
// fields, and TestGoldenDirectories of the simulator made the others at work.
const (
	keptVersions = "testdata/versions"
	fullPackage  = "full.tar.gz"
)

// TestGoldenFull keeps a directory with all fields, if asked to.
func TestGoldenFull(t *testing.T) {
	if !*update {
		t.Skip("writes test data: go test ./site/store -run TestGoldenFull -update")
	}
	dir := t.TempDir()
	s := open(t, options(dir))
	if err := s.Commit(full()); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	to := filepath.Join(keptVersions, fmt.Sprint(versions.Own().Newest))
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := golden.Pack(filepath.Join(to, fullPackage), dir); err != nil {
		t.Fatalf("the test data of a version is written once: %v", err)
	}
}

// TestGoldenVersions reads the directories of all versions before this build's. Each is
// read by a build of its version and by the next one. What was read and is written again
// in that version's form is the same, byte for byte. A core starts on what a site left.
func TestGoldenVersions(t *testing.T) {
	kept, err := filepath.Glob(filepath.Join(keptVersions, "*", "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[versions.Version]int)
	for _, from := range kept {
		n, err := strconv.ParseUint(filepath.Base(filepath.Dir(from)), 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		v := versions.Version(n)
		found[v]++
		t.Run(fmt.Sprintf("%d/%s", v, filepath.Base(from)), func(t *testing.T) { readsGolden(t, v, from) })
	}
	for v := versions.First; v < versions.Own().Newest; v++ {
		if found[v] < 2 {
			t.Errorf("%d directories of version %d are kept", found[v], v)
		}
	}
}

func readsGolden(t *testing.T, v versions.Version, from string) {
	t.Helper()
	var read [2]stored.Restored
	var dir string
	var o store.Options
	for i := range read {
		dir = t.TempDir()
		if err := golden.Unpack(dir, from); err != nil {
			t.Fatal(err)
		}
		id := identityIn(t, dir)
		o = store.Options{Dir: dir, Cluster: id.GetCluster(), Site: core.SiteID(id.GetSite()), Versions: versions.Of(v + versions.Version(i))}
		s := open(t, o)
		read[i], o.Members = load(t, s), s.Members().Sites
		closed(t, s)
	}
	if !reflect.DeepEqual(read[0], read[1]) {
		t.Errorf("a build of version %d reads\n%+v\nthe next one\n%+v", v, read[0], read[1])
	}
	r := read[1]
	if r.Version != v {
		t.Errorf("the data is of version %d", r.Version)
	}
	wantSame(t, v, dir, o, &r)
	if filepath.Base(from) == fullPackage {
		return // its fields are of no cluster that there could be
	}
	c, err := core.New(core.Config{Self: o.Site, Members: o.Members, Rand: rand.New(rand.NewPCG(1, 1)), Versions: versions.Of(v + 1)}, r)
	if err != nil {
		t.Fatalf("no core starts on the data: %v", err)
	}
	var out core.Effects
	for now := (input.Now{Tick: 1, Wall: 1 << 42}); now.Tick < 20_000; now.Tick, now.Wall = now.Tick+500, now.Wall+500 {
		c.Step(now, input.Wake{})
		c.Drain(&out)
		if out.Records.Version != 0 || out.Records.Catalogue != nil && out.Records.Catalogue.Version > v {
			t.Errorf("the site raises the version by itself: %+v", out.Records)
		}
		out.Reset()
	}
	if st := c.Status(); st.Halted != 0 || st.Versions.Cluster != v || st.Entities != len(r.Entities) {
		t.Errorf("the core is at %+v", st)
	}
}

// wantSame writes what was read of a directory anew, in the form of a version, and
// compares all keys and values.
func wantSame(t *testing.T, v versions.Version, dir string, o store.Options, r *stored.Restored) {
	t.Helper()
	o.Dir, o.Incarnation, o.Versions = t.TempDir(), r.Incarnation, versions.Of(v)
	s := open(t, o)
	for _, b := range blocksOf(t, *r) {
		if err := s.Commit(&stored.Records{Block: b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(&stored.Records{
		Books: r.Books, Entities: r.Entities, Catalogue: r.Catalogue, Changes: r.Changes, Commits: r.Commits,
		Remembered: r.Remembered, Forecasts: r.Forecasts, Claims: r.Claims, Leases: r.Leases, Clock: r.Clock,
	}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	was, now := allKeys(t, dir), allKeys(t, o.Dir)
	for _, key := range sortedKeys(was) {
		if !bytes.Equal(was[key], now[key]) {
			t.Errorf("%q was %x, is written again as %x", key, was[key], now[key])
		}
		delete(now, key)
	}
	for key, value := range now {
		t.Errorf("%q was not there, is written as %x", key, value)
	}
}

func sortedKeys(m map[string][]byte) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// allKeys reads the values of a closed directory, by bucket and key.
func allKeys(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[string][]byte)
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			if string(name) == "journal" {
				return nil // how many commits there were
			}
			return b.ForEach(func(k, v []byte) error {
				keys[string(name)+"/"+string(k)] = bytes.Clone(v)
				return nil
			})
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return keys
}
