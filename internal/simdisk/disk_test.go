package simdisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
)

func newDisk(seed uint64) *simdisk.Disk { return simdisk.New(rand.New(rand.NewPCG(seed, 0))) }

func create(t *testing.T, d *simdisk.Disk, name string) *simdisk.File {
	t.Helper()
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f *simdisk.File, at int64, b []byte) {
	t.Helper()
	if n, err := f.WriteAt(b, at); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, d *simdisk.Disk, name string) []byte {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, d.Size(name))
	if n, err := f.ReadAt(b, 0); n != len(b) || err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	return b
}

// sectors fills n sectors with a byte.
func sectors(n int, with byte) []byte { return bytes.Repeat([]byte{with}, n*simdisk.Sector) }

// TestCutTearsSectors overwrites a synced file twice and loses the power: each sector is
// as it was at some time since the sync. Over many seeds all mixes of sectors occur. A
// sync keeps all sectors.
func TestCutTearsSectors(t *testing.T) {
	const n = 4
	mixes := make(map[string]bool)
	for seed := range uint64(20_000) {
		d := newDisk(seed)
		f := create(t, d, "a")
		write(t, f, 0, sectors(n, 'a'))
		must(t, f.Sync(), d.Sync())
		write(t, f, 0, sectors(n, 'b'))
		write(t, f, simdisk.Sector, sectors(n-1, 'c'))
		d.Cut()
		b := content(t, d, "a")
		if len(b) != n*simdisk.Sector {
			t.Fatalf("seed %d: %d bytes, and the size did not change", seed, len(b))
		}
		var mix []byte
		for s := range slices.Chunk(b, simdisk.Sector) {
			if !bytes.Equal(s, sectors(1, s[0])) || s[0] < 'a' || s[0] > 'c' {
				t.Fatalf("seed %d: a sector holds what was never in it: %q", seed, s)
			}
			mix = append(mix, s[0])
		}
		if mix[0] == 'c' {
			t.Fatalf("seed %d: %s", seed, mix)
		}
		mixes[string(mix)] = true
		if _, err := f.ReadAt(b, 0); !errors.Is(err, simdisk.ErrCut) {
			t.Fatalf("a file opened before is read: %v", err)
		}
	}
	// Two states of the first sector, three of each other.
	if want := 2 * 3 * 3 * 3; len(mixes) != want {
		t.Errorf("%d outcomes, want %d", len(mixes), want)
	}
}

// TestSyncedSurvives does random things and loses the power after a sync of all:
// nothing has changed.
func TestSyncedSurvives(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDisk(seed)
		f := create(t, d, "a")
		for range 30 {
			switch r.IntN(3) {
			case 0:
				must(t, f.Sync())
			default:
				b := make([]byte, r.IntN(1500))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				write(t, f, int64(r.IntN(2000)), b)
			}
		}
		must(t, f.Sync(), d.Sync())
		want := content(t, d, "a")
		d.Cut()
		if !bytes.Equal(content(t, d, "a"), want) {
			t.Fatalf("seed %d: what was synced is lost", seed)
		}
	}
}

// TestSizes makes a file longer without a sync. The file has the old size, the new size,
// or ends at a sector in between. Each added sector is as written or zeros.
func TestSizes(t *testing.T) {
	sizes := make(map[int64]bool)
	for seed := range uint64(2000) {
		d := newDisk(seed)
		f := create(t, d, "a")
		write(t, f, 0, sectors(1, 'a'))
		must(t, f.Sync(), d.Sync())
		write(t, f, simdisk.Sector, sectors(3, 'b'))
		d.Cut()
		sizes[d.Size("a")] = true
		b := content(t, d, "a")
		if !bytes.Equal(b[:simdisk.Sector], sectors(1, 'a')) {
			t.Fatalf("seed %d: %q", seed, b[:simdisk.Sector])
		}
		for s := range slices.Chunk(b[simdisk.Sector:], simdisk.Sector) {
			if s[0] != 'b' && s[0] != 0 || !bytes.Equal(s, sectors(1, s[0])) {
				t.Fatalf("seed %d: a sector holds what was never in it: %q", seed, s)
			}
		}
	}
	if len(sizes) != 4 {
		t.Errorf("sizes after a loss of power: %v, want 1 to 4 sectors", sizes)
	}
}

// TestNames creates, renames and removes files, and loses the power with and
// without a sync of the names.
func TestNames(t *testing.T) {
	outcomes := make(map[string]bool)
	for seed := range uint64(1000) {
		d := newDisk(seed)
		create(t, d, "old")
		create(t, d, "gone")
		must(t, d.Sync())
		must(t, d.Rename("old", "new"), d.Remove("gone"))
		create(t, d, "made")
		synced := seed%2 == 0
		if synced {
			must(t, d.Sync())
		}
		d.Cut()
		names, err := d.List()
		must(t, err)
		if synced && !slices.Equal(names, []string{"made", "new"}) {
			t.Fatalf("seed %d: after a sync of the names there are %v", seed, names)
		}
		if slices.Contains(names, "old") == slices.Contains(names, "new") {
			t.Fatalf("seed %d: a file has %v", seed, names)
		}
		outcomes[d.String()] = true
	}
	if len(outcomes) != 8 {
		t.Errorf("%d outcomes of three changes, want 8", len(outcomes))
	}
	d := newDisk(1)
	_, err := d.Open("none")
	if !errors.Is(err, fs.ErrNotExist) || !errors.Is(d.Rename("none", "a"), fs.ErrNotExist) || !errors.Is(d.Remove("none"), fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	create(t, d, "a")
	if _, err := d.Create("a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists is created: %v", err)
	}
}

// TestFailedSync has a sync fail: programs read their writes, the disk may lack them, and
// no later sync helps.
func TestFailedSync(t *testing.T) {
	outcomes := make(map[string]bool)
	for seed := range uint64(200) {
		d := newDisk(seed)
		f := create(t, d, "a")
		write(t, f, 0, sectors(2, 'a'))
		must(t, f.Sync(), d.Sync())
		write(t, f, 0, sectors(1, 'b'))
		d.Fail(simdisk.Sync, syscall.EIO)
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if b := content(t, d, "a"); b[0] != 'b' {
			t.Fatalf("seed %d: %q is read", seed, b[0])
		}
		write(t, f, simdisk.Sector, sectors(1, 'c'))
		must(t, f.Sync())
		d.Kill()
		if b := content(t, d, "a"); b[0] != 'b' {
			t.Fatalf("seed %d: %q is read after the end of the program", seed, b[0])
		}
		d.Cut()
		b := content(t, d, "a")
		if b[simdisk.Sector] != 'c' {
			t.Fatalf("seed %d: what was written and synced later is lost", seed)
		}
		outcomes[string(b[:1])] = true
	}
	if len(outcomes) != 2 {
		t.Errorf("a sector whose sync failed is %v", outcomes)
	}
}

// TestCutIn loses the power in each of some calls: all later calls fail.
func TestCutIn(t *testing.T) {
	for n := range 5 {
		d := newDisk(uint64(n))
		d.CutIn(n + 1)
		f, err := d.Create("a")
		done := 0
		for _, call := range []func() error{
			func() error { return err },
			func() error { return d.Sync() },
			func() error { _, err := f.WriteAt([]byte("x"), 0); return err },
			func() error { return f.Sync() },
			func() error { return d.Rename("a", "b") },
		} {
			if err := call(); err == nil {
				done++
			} else if !errors.Is(err, simdisk.ErrCut) {
				t.Fatal(err)
			}
			if f == nil {
				break
			}
		}
		if done != n || !d.Dead() {
			t.Errorf("%d calls were done, want %d", done, n)
		}
		d.Cut()
		if names, err := d.List(); err != nil || n > 1 && len(names) != 1 {
			t.Errorf("%v, %v", names, err)
		}
	}
}

// TestFull lets no file grow: the part that fits is written, and existing parts may be
// overwritten.
func TestFull(t *testing.T) {
	d := newDisk(1)
	f := create(t, d, "a")
	write(t, f, 0, sectors(2, 'a'))
	d.Fill(true)
	if n, err := f.WriteAt(sectors(2, 'b'), simdisk.Sector); n != simdisk.Sector || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := d.Create("b"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a file is created: %v", err)
	}
	must(t, f.Sync(), d.Rename("a", "b"), d.Sync())
	d.Fill(false)
	write(t, f, 2*simdisk.Sector, sectors(1, 'c'))
	if b := content(t, d, "b"); !bytes.Equal(b, slices.Concat(sectors(1, 'a'), sectors(1, 'b'), sectors(1, 'c'))) {
		t.Errorf("%q", b)
	}
}

// TestClone flips a bit of a copy.
func TestClone(t *testing.T) {
	d := newDisk(1)
	f := create(t, d, "a")
	write(t, f, 0, []byte{1, 2, 3})
	must(t, f.Sync(), d.Sync())
	d.Cut()
	c := d.Clone(rand.New(rand.NewPCG(1, 1)))
	if !c.Same(d) {
		t.Error("a copy differs")
	}
	c.Flip("a", 9)
	if b := content(t, c, "a"); c.Same(d) || !bytes.Equal(b, []byte{1, 0, 3}) {
		t.Errorf("%v", b)
	}
}

// TestDo does something else on the disk: if the power is lost meanwhile, it may have
// been done.
func TestDo(t *testing.T) {
	done := 0
	for seed := range uint64(100) {
		d := newDisk(seed)
		never := func() func() { t.Error("nothing is to be taken back"); return func() {} }
		d.CutIn(1)
		if err := d.Do(func() { done++ }, never); !errors.Is(err, simdisk.ErrCut) {
			t.Fatal(err)
		}
		if err := d.Do(func() { t.Error("done without power") }, never); !errors.Is(err, simdisk.ErrCut) {
			t.Fatal(err)
		}
		d.Cut()
		before := done
		if err := d.Do(func() { done++ }, never); err != nil || done != before+1 {
			t.Fatal(err, done)
		}
	}
	if done == 100 || done == 200 {
		t.Errorf("%d of 100 were done as the power was lost", done-100)
	}
}

// TestDoFails has the sync of a transaction fail. The transaction is there or not, or is
// there until the power is lost, unless another transaction succeeds before.
func TestDoFails(t *testing.T) {
	outcomes := make(map[string]int)
	for seed := range uint64(200) {
		d := newDisk(seed)
		value := 0
		set := func(n int) error {
			return d.Do(func() { value = n }, func() func() { was := value; return func() { value = was } })
		}
		must(t, set(1))
		d.Fail(simdisk.Other, syscall.EIO)
		if err := set(2); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		d.Kill()
		seen := value
		again := seed%4 == 0
		if again {
			must(t, set(3))
		}
		d.Cut()
		if again {
			if value != 3 {
				t.Fatalf("seed %d: %d after a transaction that succeeded", seed, value)
			}
			continue
		}
		outcomes[fmt.Sprint("seen ", seen, ", then ", value)]++
	}
	if len(outcomes) != 3 || outcomes["seen 1, then 1"] == 0 || outcomes["seen 2, then 2"] == 0 || outcomes["seen 2, then 1"] == 0 {
		t.Errorf("%v", outcomes)
	}
}
