package datadir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/doctor"
	storev1 "github.com/samya-db/samya/proto/samya/store/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

// crashed makes the data of a site that has ended in a crash after ten commits: the log has
// them, and site.db does not.
func crashed(t *testing.T) (dir string) {
	t.Helper()
	return copied(t, 1, false)
}

// empty makes an empty directory.
func empty(t *testing.T) (dir string) {
	t.Helper()
	return t.TempDir()
}

// stopped makes the data of a site that was stopped.
func stopped(t *testing.T) (dir string) {
	t.Helper()
	return copied(t, 1, true)
}

func copied(t *testing.T, incarnation message.Incarnation, stop bool) string {
	t.Helper()
	from, dir := t.TempDir(), t.TempDir()
	s, err := store.Open(store.Options{
		Dir: from, Cluster: "prod", Site: "us", Members: []core.SiteID{"us", "eu", "as"}, Incarnation: incarnation,
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range message.Commits(10) {
		r := &stored.Records{Commits: n + 1, Books: []stored.Books{{Name: "vm", Generation: 1, Left: core.Tokens(10 - n)}}}
		if n == 0 {
			r.Entities = []stored.Entity{{Name: "vm", Generation: 1, Initial: 10, Limit: 30}}
		}
		if err := s.Commit(r); err != nil {
			t.Fatal(err)
		}
	}
	if stop {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if !stop {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// content are the files of a directory.
func content(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func base(dir string) string { return filepath.Join(dir, "site.db") }

// log is the only file of the log.
func log(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "journal-00*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flip turns a bit of the byte that holds the nth commit's number, counted from the end
// for negative n.
func flip(t *testing.T, file string, n int) {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	var frames []int
	for at := 512; at+24 < len(b); {
		length := int(b[at]) | int(b[at+1])<<8
		if length == 0 {
			break
		}
		frames = append(frames, at)
		at = (at + 24 + length + 7) / 8 * 8
	}
	if n < 0 {
		n += len(frames)
	}
	b[frames[n]+24] ^= 1
	must(t, os.WriteFile(file, b, 0o600))
}

func edit(t *testing.T, dir string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(base(dir), 0o600, nil)
	must(t, err)
	must(t, errors.Join(db.Update(change), db.Close()))
}

// TestExamine: each kind of damage is found under its name, with its place, and nothing
// of the directory is changed.
func TestExamine(t *testing.T) {
	put := func(bucket, key string, value []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) })
		}
	}
	for title, tc := range map[string]struct {
		of     func(*testing.T) string
		damage func(*testing.T, string)
		want   string
		says   string
	}{
		"stopped": {stopped, nil, "", ""},
		"crashed": {crashed, nil, "", ""},
		"nothing": {empty, nil, doctor.DataMissing, "site.db is missing"},
		"no site.db": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Remove(base(dir)))
		}, doctor.DataMissing, "site.db is missing"},
		"an empty site.db": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Truncate(base(dir), 0))
		}, doctor.DataMissing, "site.db is empty"},
		"a site.db cut short": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Truncate(base(dir), 3*int64(os.Getpagesize())))
		}, doctor.DataDamaged, "bytes of the"},
		"a site.db of something else": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.WriteFile(base(dir), bytes.Repeat([]byte("not a database. "), 8192), 0o600))
		}, doctor.DataDamaged, "site.db"},
		"a later format": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			raw, err := proto.Marshal(&storev1.Identity{Format: 9, Cluster: "prod", Site: "us"})
			must(t, err)
			put("identity", "identity", raw)(t, dir)
		}, doctor.DataUnknown, "format 9"},
		"an identity that is none": {stopped, put("identity", "identity", []byte{0xff}), doctor.DataDamaged, "identity"},
		"a value that is none":     {stopped, put("entities", "vm", []byte{0xff}), doctor.DataDamaged, "vm"},
		"a commit damaged": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			flip(t, log(t, dir), 2)
		}, doctor.LogDamaged, "commit 3 is not valid"},
		"the last commit damaged": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			flip(t, log(t, dir), -1)
		}, doctor.LogTorn, "behind commit 9"},
		"no log": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Remove(log(t, dir)))
		}, doctor.LogDamaged, "there is no such file"},
		"a log cut short": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Truncate(log(t, dir), 1024))
		}, doctor.LogDamaged, "cut short"},
		"a log without its header": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			f, err := os.OpenFile(log(t, dir), os.O_RDWR, 0)
			must(t, err)
			_, err = f.WriteAt(make([]byte, 8), 0)
			must(t, errors.Join(err, f.Close()))
		}, doctor.LogDamaged, "no header"},
		"the log of other data": {crashed, func(t *testing.T, dir string) {
			t.Helper()
			other := copied(t, 7, false)
			b, err := os.ReadFile(log(t, other))
			must(t, err)
			must(t, os.WriteFile(log(t, dir), b, 0o600))
		}, doctor.LogForeign, "other data"},
		"an entity without books": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("books")).Delete([]byte("vm")) })
		}, doctor.BooksBroken, "its books are missing"},
		"books without an entity": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("entities")).Delete([]byte("vm")) })
		}, doctor.BooksBroken, "1 books for 0 entities"},
		"files of a start cut off": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.WriteFile(base(dir)+".new-1", nil, 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "journal-new"), nil, 0o600))
		}, doctor.DataLeftovers, "journal-new, site.db.new-1"},
		"rescued": {stopped, func(t *testing.T, dir string) {
			t.Helper()
			must(t, store.MarkRescued(dir))
		}, doctor.DataRescued, ""},
	} {
		t.Run(title, func(t *testing.T) {
			dir := tc.of(t)
			if tc.damage != nil {
				tc.damage(t, dir)
			}
			before := content(t, dir)
			r, err := Examine(dir)
			must(t, err)
			after := content(t, dir)
			if len(before) != len(after) {
				t.Errorf("%d files before, %d after", len(before), len(after))
			}
			for name, b := range before {
				if !bytes.Equal(b, after[name]) {
					t.Errorf("%s is changed", name)
				}
			}
			// The disk of the test may be full.
			r.Findings = slices.DeleteFunc(r.Findings, func(f doctor.Finding) bool { return f.ID == doctor.DiskSpace })
			var ids []string
			for _, f := range r.Findings {
				ids = append(ids, f.ID)
			}
			switch {
			case tc.want == "" && len(ids) > 0, tc.want != "" && !slices.Equal(ids, []string{tc.want}):
				t.Fatalf("found %v, want %s: %+v", ids, tc.want, r.Findings)
			case tc.want != "" && !strings.Contains(r.Findings[0].Where, tc.says):
				t.Errorf("%q does not say %q", r.Findings[0].Where, tc.says)
			}
		})
	}
}

// TestTells: a report tells whose data it is and how far it goes, as a start finds it.
func TestTells(t *testing.T) {
	for title, dir := range map[string]string{"crashed": crashed(t), "stopped": stopped(t)} {
		r, err := Examine(dir)
		must(t, err)
		d := r.Data
		commits := uint64(0)
		for _, f := range d.Log {
			if f.Last > 0 {
				commits += f.Last - f.First + 1
			}
		}
		want := uint64(0)
		if title == "crashed" {
			want = 10
		}
		if d.Site != "us" || d.Cluster != "prod" || d.Format != 5 || d.Incarnation != "0000000000000001" || d.Commit != 10 ||
			d.Entities != 1 || !slices.Equal(d.Members, []string{"as", "eu", "us"}) || d.BaseBytes == 0 || commits != want {
			t.Errorf("%s: %+v, %d commits in the log", title, d, commits)
		}
		// What a start finds is what was examined.
		s, err := store.Open(store.Options{Dir: dir, Cluster: "prod", Site: "us"})
		must(t, err)
		found, err := s.Load()
		must(t, errors.Join(err, s.Close()))
		if found.Commits != 10 || len(found.Books) != 1 || found.Books[0].Left != 1 {
			t.Errorf("%s: a start finds %+v", title, found)
		}
	}
}

// TestInUse: the directory of a site that runs is refused.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Options{Dir: dir, Cluster: "prod", Site: "us", Members: []core.SiteID{"us"}})
	must(t, err)
	_, err = Examine(dir)
	must(t, s.Close())
	if !errors.Is(err, store.ErrInUse) {
		t.Error(err)
	}
	if _, err := Examine(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFigures: the space of the disk, and figures that the alerts are about as well.
func TestFigures(t *testing.T) {
	data := &doctor.Data{Dir: "d", Site: "us", FreeBytes: new(uint64(leastFree - 1))}
	f := findings("d", &store.Examination{Refused: store.ErrNoBase}, data)
	if len(f) != 2 || f[1].ID != doctor.DiskSpace || *f[1].Value != leastFree-1 || !strings.Contains(f[1].Summary, "599 MiB") {
		t.Errorf("%+v", f)
	}
	data.FreeBytes = new(uint64(leastFree))
	if f := findings("d", &store.Examination{Refused: store.ErrNoBase}, data); len(f) != 1 {
		t.Errorf("%+v", f)
	}
	data.Log, data.Requests = []doctor.LogFile{{Bytes: 200 << 20}, {Bytes: 57 << 20}}, 14_500_000
	r, err := doctor.OfData(data, nil)
	must(t, err)
	if len(r.Findings) != 2 || r.Findings[0].ID != "SamyaLogGrows" || r.Findings[1].ID != "SamyaManyRequestsRemembered" {
		t.Errorf("%+v", r.Findings)
	}
}
