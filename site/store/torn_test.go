package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
	"pgregory.net/rapid"
)

const (
	sector = 512
	// metaEnd is the end of the two meta pages, which stand first.
	metaEnd = 2 * 4096
	// metaBytes is the part of a meta page that counts: its head, and the bytes summed
	// up.
	metaBytes = 16 + 64
)

// TestTornCheckpoints loses power while the log is carried over to the base. The disk
// then has the base before a transaction with any sectors of the transaction's pages, as
// long as the pages are not synced. Once they are, it has all of them and a part of the
// meta page. The log has all commits, so the site finds all of them, and goes on from
// there.
func TestTornCheckpoints(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(inMemory(t), "")
		if err != nil {
			rt.Fatal(err)
		}
		run := &torn{t: t, rt: rt, dir: dir}
		s := run.open(dir)
		var batch batches
		for range rapid.IntRange(0, 12).Draw(rt, "batches before") {
			run.commit(s, batch.draw(rt))
		}
		run.load(s)
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			run.commit(s, batch.draw(rt))
		}
		type transaction struct {
			before, after []byte
			log           fs.FS
		}
		var transactions []transaction
		for more := true; more; {
			tx := transaction{before: run.file(), log: logOf(t, dir)}
			if more, err = s.Step(); err != nil {
				rt.Fatal(err)
			}
			// A step may take two transactions, a long deletion and then the number. The
			// disk between them is not seen: the first is synced whole before the second.
			if tx.after = run.file(); newestMeta(tx.after) == newestMeta(tx.before)+1 {
				transactions = append(transactions, tx)
			}
		}
		want := run.load(s)
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
		if len(transactions) == 0 {
			rt.Skip("the batches are empty")
		}
		next := batch.draw(rt)
		for range 3 {
			tx := rapid.SampledFrom(transactions).Draw(rt, "transaction")
			image := tear(rt, tx.before, tx.after)
			run.check(image, tx.log, want, next)
		}
	})
}

// inMemory returns a directory that need not be durable, as the test tears files by
// itself. It is in memory where the system has /dev/shm.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "samya-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newestMeta is the number of the last transaction of a base, by the newer of its meta
// pages.
func newestMeta(b []byte) uint64 {
	const number = 16 + 48
	return max(binary.NativeEndian.Uint64(b[number:]), binary.NativeEndian.Uint64(b[metaEnd/2+number:]))
}

// tear draws the disk's possible bytes of a transaction.
func tear(rt *rapid.T, before, after []byte) []byte {
	image := slices.Clone(before)
	if len(after) > len(before) && rapid.Bool().Draw(rt, "grown") {
		image = append(image, make([]byte, len(after)-len(before))...)
	}
	changed := changedSectors(image, after)
	if rapid.Bool().Draw(rt, "pages unsynced") {
		for _, at := range changed {
			if rapid.Bool().Draw(rt, "written") {
				copy(image[at:], after[at:at+sector])
			}
		}
		return image
	}
	image = append(image, make([]byte, len(after)-len(image))...)
	copy(image[metaEnd:], after[metaEnd:])
	// Which of the two meta pages the commit wrote.
	page := 0
	if bytes.Equal(before[:metaEnd/2], after[:metaEnd/2]) {
		page = metaEnd / 2
	}
	// Disks write whole sectors. A sum guards the bytes that count, so that not even half
	// of a sector would do harm.
	cut := sector * rapid.IntRange(0, metaEnd/2/sector).Draw(rt, "sectors of the meta page")
	if rapid.Bool().Draw(rt, "within a sector") {
		cut = rapid.IntRange(0, metaBytes).Draw(rt, "bytes of the meta page")
	}
	copy(image[page:page+cut], after[page:])
	return image
}

// changedSectors returns the offsets of the sectors that differ, behind the meta pages
// and within both files.
func changedSectors(image, after []byte) []int {
	var changed []int
	for at := metaEnd; at+sector <= min(len(image), len(after)); at += sector {
		if !bytes.Equal(image[at:at+sector], after[at:at+sector]) {
			changed = append(changed, at)
		}
	}
	return changed
}

// torn is a store with torn checkpoints.
type torn struct {
	t   *testing.T
	rt  *rapid.T
	dir string
}

func (r *torn) open(dir string) *store.Store {
	s, err := store.Open(options(dir))
	if err != nil {
		r.rt.Fatalf("opening: %v", err)
	}
	return s
}

func (r *torn) commit(s *store.Store, records *stored.Records) {
	if err := s.Commit(records); err != nil {
		r.rt.Fatal(err)
	}
}

func (r *torn) load(s *store.Store) stored.Restored {
	state, err := loadAll(s)
	if err != nil {
		r.rt.Fatalf("loading: %v", err)
	}
	return state
}

func (r *torn) file() []byte {
	b, err := os.ReadFile(filepath.Join(r.dir, "site.db"))
	if err != nil {
		r.rt.Fatal(err)
	}
	return b
}

// check starts on the disk and goes on from there.
func (r *torn) check(image []byte, log fs.FS, want stored.Restored, next *stored.Records) {
	dir, err := os.MkdirTemp(r.dir, "")
	if err != nil {
		r.rt.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(dir, log), os.WriteFile(filepath.Join(dir, "site.db"), image, 0o600)); err != nil {
		r.rt.Fatal(err)
	}
	s := r.open(dir)
	if got := r.load(s); !reflect.DeepEqual(got, want) {
		r.rt.Fatalf("got %+v\nwant %+v", got, want)
	}
	r.commit(s, next)
	on := r.load(s)
	if err := s.Close(); err != nil {
		r.rt.Fatal(err)
	}
	s = r.open(dir)
	if got := r.load(s); !reflect.DeepEqual(got, on) {
		r.rt.Fatalf("after one more commit: got %+v\nwant %+v", got, on)
	}
	if err := s.Close(); err != nil {
		r.rt.Fatal(err)
	}
}

// batches draws the records of a run, with numbered blocks and changes.
type batches struct{ block, change uint64 }

func (b *batches) draw(rt *rapid.T) *stored.Records {
	names := []string{"a", "a/b", "b", "z"}
	var r stored.Records
	if rapid.Bool().Draw(rt, "delete") {
		r.Deleted = []string{rapid.SampledFrom(names).Draw(rt, "deleted")}
	}
	for _, name := range names {
		if !rapid.Bool().Draw(rt, "put "+name) {
			continue
		}
		left := core.Tokens(rapid.Int64().Draw(rt, "left"))
		results := make([]stored.LimitResult, rapid.IntRange(0, 60).Draw(rt, "results"))
		for i := range results {
			results[i] = stored.LimitResult{RequestID: name, Body: uint64(i), Limit: left}
		}
		r.Entities = append(r.Entities, stored.Entity{Name: name, Generation: b.block, Results: results})
		if len(results) == 0 {
			r.Entities[len(r.Entities)-1].Results = nil
		}
		r.Books = append(r.Books, stored.Books{Name: name, Generation: b.block, Left: left})
		if n := rapid.IntRange(0, 3000).Draw(rt, "state"); n > 0 {
			r.Forecasts = append(r.Forecasts, stored.Forecast{Name: name, Generation: b.block, State: make([]byte, n)})
		}
	}
	// Up to several pages, so that the file grows.
	if n := rapid.IntRange(0, 400).Draw(rt, "requests"); n > 0 {
		b.block++
		r.Block = stored.Block{Sequence: b.block, Wall: rapid.Int64().Draw(rt, "wall"), Records: make([]stored.Request, n)}
		key := rapid.Uint64().Draw(rt, "key")
		for i := range r.Block.Records {
			r.Block.Records[i] = stored.Request{Key: attempt.Key{byte(key), byte(key >> 8), 2: byte(i), 3: byte(i >> 8)}, Body: key + uint64(i)}
		}
	}
	if rapid.Bool().Draw(rt, "change") {
		b.change++
		r.Changes = []stored.Change{{Number: b.change, Change: stored.CatalogueChange{Name: names[0]}}}
		r.Catalogue = &stored.Catalogue{Numbered: b.change}
	}
	r.ForgetBlocks = rapid.Uint64Range(0, b.block).Draw(rt, "forget blocks")
	return &r
}

// TestTornFirstStart: whatever a first start that was cut off has left, the next start
// makes a new database.
func TestTornFirstStart(t *testing.T) {
	whole := func() []byte {
		o := options(t.TempDir())
		closed(t, open(t, o))
		b, err := os.ReadFile(filepath.Join(o.Dir, "site.db"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(inMemory(t), "")
		if err != nil {
			rt.Fatal(err)
		}
		left := make([]byte, sector*rapid.IntRange(0, len(whole)/sector).Draw(rt, "sectors"))
		for at := 0; at < len(left); at += sector {
			if rapid.IntRange(0, 4).Draw(rt, "written") > 0 {
				copy(left[at:at+sector], whole[at:])
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "site.db.new-1"), left, 0o600); err != nil {
			rt.Fatal(err)
		}
		r := &torn{t: t, rt: rt, dir: dir}
		s := r.open(dir)
		if got := r.load(s); !reflect.DeepEqual(got, stored.Restored{Incarnation: incarnation, Version: versions.Own().Newest}) {
			rt.Fatalf("got %+v", got)
		}
		if err := s.Close(); err != nil {
			rt.Fatal(err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 2 || !isLog(files[0].Name()) || files[1].Name() != "site.db" {
			rt.Fatalf("the directory holds %v, %v", files, err)
		}
	})
}
