package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// opened counts the files of a directory that are open.
type opened struct {
	disk
	files *int
}

func (o opened) Create(name string) (journal.File, error) { return o.file(o.disk.Create(name)) }
func (o opened) Open(name string) (journal.File, error)   { return o.file(o.disk.Open(name)) }

func (o opened) file(f journal.File, err error) (journal.File, error) {
	if err != nil {
		return nil, err
	}
	*o.files++
	return openedFile{f, o.files}, nil
}

type openedFile struct {
	journal.File
	files *int
}

func (f openedFile) Close() error {
	*f.files--
	return f.File.Close()
}

// on opens the log of a disk.
func on(t *testing.T, d journal.Dir, base journal.Base, o journal.Options) *journal.Journal {
	t.Helper()
	o.Owner = owner
	j, err := journal.Open(d, base, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// put commits n values of size bytes, each under a key of its own.
func put(t *testing.T, j *journal.Journal, from, n uint64, size int) {
	t.Helper()
	var b journal.Batch
	for i := range n {
		b.Reset()
		b.Put(1, key(from+i), bytes.Repeat([]byte{byte(from + i)}, size))
		if err := j.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFilesAreClosed: a checkpoint or a start leaves open only the current segment and
// the spare segment, and the end leaves no file open.
func TestFilesAreClosed(t *testing.T) {
	files := 0
	d, base := opened{disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}, &files}, newBase()
	for round := range uint64(4) {
		j := on(t, d, base, journal.Options{})
		if files > 2 {
			t.Errorf("%d files are open after start %d", files, round)
		}
		put(t, j, 100*round, 10, 300)
		// A segment is sealed, and another in the end; the last start of all finds two.
		if _, err := j.Step(); err != nil {
			t.Fatal(err)
		}
		put(t, j, 100*round+10, 10, 300)
		if round < 3 {
			steps(t, j)
			put(t, j, 100*round+20, 3, 300)
			steps(t, j)
			if files != 2 {
				t.Errorf("%d files are open after a checkpoint", files)
			}
		}
		for range 2 {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if files != 0 {
				t.Fatalf("%d files are open at the end", files)
			}
		}
		if err := journal.Unused(d); !errors.Is(err, journal.ErrDamaged) && round == 3 || files != 0 {
			t.Errorf("%v, %d files are open after a look", err, files)
		}
	}
	if _, err := journal.Open(d, base, journal.Options{Owner: owner + 1}); !errors.Is(err, journal.ErrForeign) || files != 0 {
		t.Errorf("%v, %d files are open after a start that failed", err, files)
	}
	j := on(t, d, base, journal.Options{})
	if st := j.Stats(); st.Number != 89 || len(base.buckets[1]) != 89 || files != 2 {
		t.Errorf("%+v, %d keys, %d files", st, len(base.buckets[1]), files)
	}
	if err := j.Close(); err != nil || files != 0 {
		t.Errorf("%v, %d files are open", err, files)
	}
}

// TestClosed: a closed journal says so.
func TestClosed(t *testing.T) {
	j := on(t, disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}, newBase(), journal.Options{})
	put(t, j, 1, 2, 10)
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	// A journal that does not know fails the test here: its files are gone.
	if j.Failed() == nil {
		t.Fatal("a closed journal has not failed")
	}
	var b journal.Batch
	b.Put(1, []byte("k"), nil)
	_, appended := j.Append(&b)
	_, stepped := j.Step()
	for what, err := range map[string]error{"append": appended, "step": stepped, "sync": j.Sync(), "commit": j.Commit(&b), "failed": j.Failed()} {
		if err == nil || err.Error() != "the log is closed" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNothingOfARefusedCommit: a commit without operations, of too many bytes, or with a
// key that cannot be logged, is refused, and the log goes on without it.
func TestNothingOfARefusedCommit(t *testing.T) {
	d, base := disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}, newBase()
	const most = 1000
	j := on(t, d, base, journal.Options{MaxCommit: most})
	put(t, j, 1, 1, 10)
	var b journal.Batch
	for what, prepare := range map[string]func(){
		"never filled": func() {},
		"emptied":      func() { b.Put(1, []byte("k"), nil); b.Reset() },
		"of a long key": func() {
			b.Reset()
			b.Put(1, []byte("k"), nil)
			b.Put(1, bytes.Repeat([]byte("k"), 1<<16), nil)
		},
		"of a byte too many": func() {
			b.Reset()
			b.Put(1, []byte("k"), make([]byte, most-8))
		},
	} {
		prepare()
		if n, err := j.Append(&b); err == nil || strings.HasPrefix(what, "of a ") != strings.Contains(err.Error(), "too large for the log") {
			t.Errorf("%s: commit %d, %v", what, n, err)
		}
		b = journal.Batch{}
	}
	put(t, j, 2, 1, most-8-len(key(2))) // as large as a commit may be
	if st := j.Stats(); st.Number != 2 || st.Durable != 2 || st.Backlog != j.Backlog() || st.Backlog < 2*(head+8+8+10) {
		t.Errorf("%+v, backlog %d", st, j.Backlog())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if n := on(t, d, base, journal.Options{}).Stats().Number; n != 2 || len(base.buckets[1]) != 2 {
		t.Errorf("the log ends with commit %d, and the base has %v", n, base.buckets)
	}
}

// TestLogWithoutItsBase: a log with commits and without its base is refused, and not
// begun anew. A start that was cut off, before the base had a number, is done again.
func TestLogWithoutItsBase(t *testing.T) {
	ops := []journal.Op{{Kind: journal.Put, Bucket: 2, Key: []byte("first"), Value: []byte("of all")}}
	begun := func(commits uint64) disk {
		d := disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}
		j := on(t, d, newBase(), journal.Options{})
		put(t, j, 1, commits, 10)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	carried := begun(0)
	base := newBase()
	j := on(t, carried, base, journal.Options{First: ops})
	if base.buckets[2]["first"] != "of all" {
		t.Errorf("the base begins with %v", base.buckets)
	}
	put(t, j, 1, 3, 10)
	delete(base.buckets[2], "first")
	steps(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j = on(t, carried, base, journal.Options{First: ops}); len(base.buckets[2]) != 0 {
		t.Errorf("the base begins anew: %v", base.buckets)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		dir  disk
		file string
	}{
		"nothing": {disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}, ""},
		"a start": {begun(0), ""},
		"commits": {begun(2), first},
		// All of it was carried over: the segment is empty.
		"commits of before": {carried, "journal-0000000000000004"},
	} {
		unused := journal.Unused(tc.dir)
		j, started := journal.Open(tc.dir, newBase(), journal.Options{Owner: owner})
		if started == nil {
			started = j.Close()
		}
		for call, err := range map[string]error{"unused": unused, "open": started} {
			damage, _ := errors.AsType[*journal.DamageError](err)
			if tc.file == "" && err != nil || tc.file != "" && (damage == nil || damage.File != tc.file || damage.Offset != header) {
				t.Errorf("%s, %s: %v", what, call, err)
			}
		}
	}
}

// TestOldSegments: a segment that the base has all of is not needed, and may be damaged.
// It must be the base's.
func TestOldSegments(t *testing.T) {
	for what, tc := range map[string]struct {
		change func(d *simdisk.Disk) error
		want   error
	}{
		"damaged":   {func(d *simdisk.Disk) error { d.Flip(first, 80); return nil }, nil},
		"cut":       {func(d *simdisk.Disk) error { d.Truncate(first, header+head); return nil }, nil},
		"empty":     {func(d *simdisk.Disk) error { d.Truncate(first, 0); return nil }, nil},
		"another's": {func(d *simdisk.Disk) error { return foreign(d, first, 1) }, journal.ErrForeign},
	} {
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		segments(t, d, base, []int{10, 20, 30, 40}, 2)
		apply(base.buckets, journal.Op{Kind: journal.Put, Bucket: 1, Key: []byte("k"), Value: bytes.Repeat([]byte{2}, 20)})
		base.through, base.known = 2, true
		if err := tc.change(d); err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", what, err, tc.want)
			continue
		}
		if tc.want != nil {
			continue
		}
		if n := j.Stats().Number; n != 4 || len(base.buckets[1]["k"]) != 40 {
			t.Errorf("%s: the log ends with commit %d, and a value of %d bytes", what, n, len(base.buckets[1]["k"]))
		}
		if names, err := d.List(); err != nil || len(names) > 2 {
			t.Errorf("%s: files %v, %v", what, names, err)
		}
	}
}

// TestOneCommitIsMissing: a log that begins a commit too late is refused.
func TestOneCommitIsMissing(t *testing.T) {
	d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
	names := segments(t, d, base, []int{10, 20}, 1)
	if err := d.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	_, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
	if damage, ok := errors.AsType[*journal.DamageError](err); !ok || damage.File != names[1] {
		t.Errorf("%v, want what is ahead of %s to be missing", err, names[1])
	}
}

// TestOtherNames: files with names not quite like a segment's are no segments.
func TestOtherNames(t *testing.T) {
	d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
	segments(t, d, base, []int{10}, 0)
	names := []string{
		"journal-000000000000000A", "journal-00000000000000zz", "journal-00000000000000001", "journal-0000000000001", "journal-", "0000000000000002",
	}
	for _, name := range names {
		if err := empty(d, name); err != nil {
			t.Fatal(err)
		}
	}
	if n := on(t, disk{d}, base, journal.Options{}).Stats().Number; n != 1 {
		t.Errorf("the log ends with commit %d", n)
	}
	for _, name := range names {
		if _, err := d.Open(name); err != nil {
			t.Errorf("%s has gone: %v", name, err)
		}
	}
}

// TestDamagedMarks turns a bit of each byte of a mark: the mark counts as none, and
// nothing is missing.
func TestDamagedMarks(t *testing.T) {
	for bit := int64(0); bit < 8*20; bit += 7 {
		l := fill(t, []int{10, 10}, 0)
		l.disk.Flip(first, 8*40+bit)
		if n, err := l.open(); err != nil || n != 2 {
			t.Fatalf("bit %d: the log ends with commit %d, %v", bit, n, err)
		}
	}
}

// TestPartsAreBounded: a step reads a piece of the log, or writes a transaction of about
// as much as it may.
func TestPartsAreBounded(t *testing.T) {
	const size = 100_000
	d, base := disk{simdisk.New(rand.New(rand.NewPCG(1, 0)))}, newBase()
	j := on(t, d, base, journal.Options{ChunkBytes: 2 * size})
	put(t, j, 1, 40, size)
	base.largest = 0
	parts, before := 0, 0
	for more := true; more; parts++ {
		var err error
		if more, err = j.Step(); err != nil {
			t.Fatal(err)
		}
		if base.largest == 0 {
			before++
		}
	}
	if base.largest > 2*size {
		t.Errorf("a transaction writes %d bytes", base.largest)
	}
	// It begins a segment, and reads 4 MB.
	if before < 4 || parts-before < 20 {
		t.Errorf("%d steps before the first transaction, %d in all", before, parts)
	}
	put(t, j, 1, 40, size)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	base.largest = 0
	if on(t, d, base, journal.Options{ReplayBytes: 2 * size}); base.largest > 2*size || base.largest == 0 {
		t.Errorf("a transaction of a start writes %d bytes", base.largest)
	}
}

// TestOSDir: a directory of the system makes files for its owner alone, and none in place
// of another.
func TestOSDir(t *testing.T) {
	dir := journal.OSDir(t.TempDir())
	f, err := dir.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("text"), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(); n != 4 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := dir.Create("a"); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second one of the name: %v", err)
	}
	if _, err := dir.Open("b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if info, err := os.Stat(filepath.Join(string(dir), "a")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err == nil {
		t.Error("a file that is closed is synced")
	}
	if err := errors.Join(dir.Rename("a", "b"), dir.Sync()); err != nil {
		t.Fatal(err)
	}
	if names, err := dir.List(); err != nil || fmt.Sprint(names) != "[b]" {
		t.Errorf("%v, %v", names, err)
	}
	if err := dir.Remove("b"); err != nil {
		t.Error(err)
	}
	if err := (dir + "/none").Sync(); err == nil && runtime.GOOS != "windows" {
		t.Error("a directory that is not there is synced")
	}
}
