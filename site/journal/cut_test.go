package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// segments logs commits, the first of them sealed by a checkpoint that is not done when
// the process ends. It returns the names of the files in the order of commits.
func segments(tb rapid.TB, d *simdisk.Disk, base *memoryBase, lengths []int, sealed int) []string {
	tb.Helper()
	j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
	if err != nil {
		tb.Fatal(err)
	}
	names := []string{first}
	var b journal.Batch
	for i, n := range lengths {
		if i == sealed && i > 0 {
			if _, err := j.Step(); err != nil {
				tb.Fatal(err)
			}
			names = append(names, fmt.Sprintf("journal-%016x", i+1))
		}
		b.Reset()
		b.Put(1, []byte("k"), bytes.Repeat([]byte{byte(i + 1)}, n))
		if err := j.Commit(&b); err != nil {
			tb.Fatal(err)
		}
	}
	d.Kill()
	return names
}

// drawLengths draws the lengths of values, so that some files grow more than once.
func drawLengths(t *rapid.T) []int {
	length := rapid.OneOf(rapid.IntRange(1, 1500), rapid.IntRange(1, 150_000))
	return rapid.SliceOfN(length, 1, 12).Draw(t, "lengths")
}

// TestCutShort cuts a file of the log at any byte. The start is refused, whatever was
// behind the cut, and the error names the file and the offset.
func TestCutShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		lengths := drawLengths(t)
		names := segments(t, d, base, lengths, rapid.IntRange(0, len(lengths)).Draw(t, "sealed"))
		name := rapid.SampledFrom(names).Draw(t, "file")
		at := rapid.Int64Range(0, d.Size(name)-1).Draw(t, "cut at")
		d.Truncate(name, at)
		j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if err == nil {
			t.Fatalf("%s is cut at %d, and the log ends with commit %d of %d", name, at, j.Stats().Number, len(lengths))
		}
		damage, _ := errors.AsType[*journal.DamageError](err)
		want := at
		if at < header {
			want = 0
		}
		if damage == nil || damage.File != name || damage.Offset != want {
			t.Errorf("%s is cut at %d: %v", name, at, err)
		}
	})
}

// TestCutOfWhatGrew cuts a file every few bytes, at most the part by which it grew: the
// frames there are gone.
func TestCutOfWhatGrew(t *testing.T) {
	lengths := []int{100, 150_000, 200, 150_000}
	for at := int64(header); ; at += 4093 {
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		name := segments(t, d, base, lengths, 0)[0]
		if at >= d.Size(name) {
			return
		}
		d.Truncate(name, at)
		_, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if damage, ok := errors.AsType[*journal.DamageError](err); !ok || damage.File != name || damage.Offset != at {
			t.Errorf("%s is cut at %d: %v", name, at, err)
		}
	}
}

// TestSpareIsCut cuts the spare file at any byte, or damages its header: nothing is
// missing, neither then nor once the log reuses the file and the power is lost.
func TestSpareIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		last := 0
		var j *journal.Journal
		open := func() {
			var err error
			if j, err = journal.Open(disk{d}, base, journal.Options{Owner: owner}); err != nil {
				t.Fatal(err)
			}
			if n := j.Stats().Number; n != journal.Number(last) {
				t.Fatalf("the log ends with commit %d of %d", n, last)
			}
		}
		commit := func(lengths []int) {
			for _, n := range lengths {
				var b journal.Batch
				last++
				b.Put(1, []byte("k"), bytes.Repeat([]byte{byte(last)}, n))
				if err := j.Commit(&b); err != nil {
					t.Fatal(err)
				}
			}
		}
		carry := func() {
			for more := true; more; {
				var err error
				if more, err = j.Step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		open()
		commit(drawLengths(t))
		carry()
		d.Kill()
		if rapid.Bool().Draw(t, "header") {
			d.Flip("journal-spare", rapid.Int64Range(0, 8*60).Draw(t, "bit"))
		} else {
			d.Truncate("journal-spare", rapid.Int64Range(0, d.Size("journal-spare")-1).Draw(t, "cut at"))
		}
		open()
		for range 2 {
			commit(drawLengths(t))
			carry()
		}
		commit(drawLengths(t))
		d.CutHard()
		open()
	})
}

// TestNewestIsMissing takes the newest file of a log away, at any time of a run with
// checkpoints and starts: the start is refused, and the error names the missing file.
func TestNewestIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		var j *journal.Journal
		open := func() {
			var err error
			if j, err = journal.Open(disk{d}, base, journal.Options{Owner: owner, ChunkBytes: 100}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		var b journal.Batch
		for n := range rapid.IntRange(1, 30).Draw(t, "things") {
			var err error
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				d.Kill()
				open()
			case 1, 2, 3:
				_, err = j.Step()
			default:
				b.Reset()
				b.Put(1, key(uint64(n)), make([]byte, 50))
				err = j.Commit(&b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d.Kill()
		names, err := d.List()
		if err != nil {
			t.Fatal(err)
		}
		newest := ""
		for _, name := range names {
			if name != "journal-spare" {
				newest = name
			}
		}
		if err := d.Remove(newest); err != nil {
			t.Fatal(err)
		}
		_, err = journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if damage, ok := errors.AsType[*journal.DamageError](err); !ok || damage.File != newest || damage.Offset != 0 {
			t.Errorf("of %v, %s is missing: %v", names, newest, err)
		}
	})
}

// TestTornGrowth loses the power in each call by which a file grows: no start takes such
// a file for a cut file.
func TestTornGrowth(t *testing.T) {
	for call := 1; call < 40; call++ {
		for seed := range uint64(10) {
			d, base := simdisk.New(rand.New(rand.NewPCG(seed, uint64(call)))), newBase()
			j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			d.CutIn(call)
			acknowledged := journal.Number(0)
			var b journal.Batch
			for {
				b.Reset()
				b.Put(1, []byte("k"), make([]byte, 45_000))
				if err := j.Commit(&b); err != nil {
					break
				}
				acknowledged++
			}
			d.Cut()
			if j, err = journal.Open(disk{d}, base, journal.Options{Owner: owner}); err != nil {
				t.Fatalf("power lost in call %d, seed %d: %v", call, seed, err)
			}
			if n := j.Stats().Number; n < acknowledged || n > acknowledged+1 {
				t.Errorf("power lost in call %d, seed %d: %d commits of %d", call, seed, n, acknowledged)
			}
		}
	}
}

// TestLogWithoutMarks opens a log of an earlier version, without marks in its headers.
// Bytes in the place of the mark are not used.
func TestLogWithoutMarks(t *testing.T) {
	d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
	names := segments(t, d, base, []int{10, 20, 100_000, 30}, 2)
	for _, name := range names {
		f, err := d.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(make([]byte, 24), 40); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		if err != nil || j.Stats().Number != 4 || len(base.buckets[1]["k"]) != 30 {
			t.Fatalf("%v, a value of %d bytes", err, len(base.buckets[1]["k"]))
		}
		d.Kill()
	}
}
