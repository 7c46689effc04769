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

const (
	header = 512
	head   = 24
	first  = "journal-0000000000000001"
)

// logged is a log of commits of a single segment, each of a Put to key 1, at the end of
// its process.
type logged struct {
	disk *simdisk.Disk
	base *memoryBase
	// at are the offsets of frames, ends the ends of their payloads.
	at, ends []int64
}

// fill logs commits with values of the given lengths. All but the last unsynced commits
// are durable. The process then ends without a loss of power, so that all commits are
// there.
func fill(tb rapid.TB, lengths []int, unsynced int) *logged {
	tb.Helper()
	l := &logged{disk: simdisk.New(rand.New(rand.NewPCG(1, 0))), base: newBase()}
	j, err := journal.Open(disk{l.disk}, l.base, journal.Options{Owner: owner})
	if err != nil {
		tb.Fatal(err)
	}
	var b journal.Batch
	at := int64(header)
	for i, n := range lengths {
		b.Reset()
		b.Put(1, []byte("k"), bytes.Repeat([]byte{byte(i + 1)}, n))
		l.at, l.ends = append(l.at, at), append(l.ends, at+head+int64(b.Len()))
		at = (l.ends[i] + 7) / 8 * 8
		if _, err := j.Append(&b); err != nil {
			tb.Fatal(err)
		}
		if i < len(lengths)-unsynced {
			if err := j.Sync(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	l.disk.Kill()
	return l
}

// open opens a log and returns the number of the base's last commit.
func (l *logged) open() (journal.Number, error) {
	j, err := journal.Open(disk{l.disk}, l.base, journal.Options{Owner: owner})
	if err != nil {
		return 0, err
	}
	return j.Stats().Number, j.Close()
}

// flip turns a bit of a log, and checks the next start. The log is refused, with the
// place of the damage, if the bit is in a commit that a later commit proves durable.
// Otherwise a start takes the commit for the cut-off end of the log, and keeps the
// commits before.
func flip(t rapid.TB, lengths []int, unsynced int, bit int64) {
	t.Helper()
	l := fill(t, lengths, unsynced)
	l.disk.Flip(first, bit)
	hit, inFrame := -1, false
	for i := range l.at {
		if bit/8 >= l.at[i] {
			hit, inFrame = i, bit/8 < l.ends[i]
		}
	}
	n, err := l.open()
	damage, _ := errors.AsType[*journal.DamageError](err)
	all := journal.Number(len(lengths))
	// A commit appended later proves the last synced commit durable.
	synced := len(lengths) - unsynced
	proven := hit < synced && hit < len(lengths)-1
	switch {
	case bit/8 < 36: // what is used of the header
		if damage == nil || damage.File != first || damage.Offset != 0 {
			t.Errorf("a damaged header: %d, %v", n, err)
		}
	case !inFrame: // padding, and what is not used
		if err != nil || n != all {
			t.Errorf("no commit is damaged: %d, %v", n, err)
		}
	case proven:
		if !errors.Is(err, journal.ErrDamaged) || damage.File != first || damage.Offset != l.at[hit] {
			t.Errorf("bit %d: commit %d at %d is damaged, of %d durable: %d, %v", bit, hit+1, l.at[hit], synced, n, err)
		}
	default:
		if err != nil || n != journal.Number(hit) {
			t.Errorf("bit %d: the log is cut off at commit %d, %d durable: %d, %v", bit, hit+1, synced, n, err)
		}
		if want := lengths[:hit]; hit > 0 && len(l.base.buckets[1]["k"]) != want[hit-1] {
			t.Errorf("the base has a value of %d bytes", len(l.base.buckets[1]["k"]))
		}
	}
}

// TestFlips turns a bit of a log.
func TestFlips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(1, 1500), 1, 8).Draw(t, "lengths")
		unsynced := rapid.IntRange(0, len(lengths)).Draw(t, "unsynced")
		end := int64(header)
		for _, n := range lengths {
			end += (head + 8 + 1 + int64(n) + 7) / 8 * 8
		}
		flip(t, lengths, unsynced, rapid.Int64Range(0, end*8+800).Draw(t, "bit"))
	})
}

// TestFlipsOfShortLogs turns the bits of the shortest logs, bit by bit: each commit is
// once the last, the last but one, and the last synced.
func TestFlipsOfShortLogs(t *testing.T) {
	for commits := 1; commits <= 3; commits++ {
		lengths := []int{1, 9, 2}[:commits]
		for unsynced := range commits + 1 {
			at := int64(header)
			for _, n := range lengths {
				end := at + head + 8 + 1 + int64(n)
				// Each byte of the head, and some of the bytes behind it.
				for b := at; b < end; b++ {
					if b < at+head || (b-at)%5 == 0 || b == end-1 {
						flip(t, lengths, unsynced, b*8+(b-at)%8)
					}
				}
				at = (end + 7) / 8 * 8
			}
		}
	}
}

// TestSegmentsMissing refuses a log with a file that is gone, is another log's, or has
// changed.
func TestSegmentsMissing(t *testing.T) {
	// Two segments: 1 to 2 and 3 to 4, not yet carried over.
	start := func(t *testing.T) (*simdisk.Disk, *memoryBase) {
		t.Helper()
		d, base := simdisk.New(rand.New(rand.NewPCG(1, 0))), newBase()
		j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
		var b journal.Batch
		commit := func(n journal.Number) {
			b.Reset()
			b.Put(1, []byte("k"), fmt.Append(nil, n))
			err = errors.Join(err, j.Commit(&b))
		}
		commit(1)
		commit(2)
		_, failed := j.Step()
		commit(3)
		commit(4)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		d.Kill()
		return d, base
	}
	const second = "journal-0000000000000003"
	for name, tc := range map[string]struct {
		change func(*simdisk.Disk) error
		want   error
		file   string
		offset int64
	}{
		"the first is gone":  {func(d *simdisk.Disk) error { return d.Remove(first) }, journal.ErrDamaged, second, 0},
		"the second is gone": {func(d *simdisk.Disk) error { return d.Remove(second) }, journal.ErrDamaged, second, 0},
		"both are gone": {func(d *simdisk.Disk) error {
			return errors.Join(d.Remove(first), d.Remove(second))
		}, journal.ErrDamaged, first, 0},
		"the end of the first": {func(d *simdisk.Disk) error {
			d.Flip(first, (header+head+1)*8)
			return nil
		}, journal.ErrDamaged, first, header},
		"the last of the first": {func(d *simdisk.Disk) error {
			d.Flip(first, (header+40+head)*8)
			return nil
		}, journal.ErrDamaged, first, header + 40},
		"another name": {func(d *simdisk.Disk) error {
			return d.Rename(second, "journal-0000000000000002")
		}, journal.ErrDamaged, "journal-0000000000000002", 0},
		"too short":     {func(d *simdisk.Disk) error { return empty(d, second) }, journal.ErrDamaged, second, 0},
		"another's":     {func(d *simdisk.Disk) error { return foreign(d, second, 3) }, journal.ErrForeign, "", 0},
		"other names":   {func(d *simdisk.Disk) error { return empty(d, "journal-3") }, nil, "", 0},
		"a spare file":  {func(d *simdisk.Disk) error { return empty(d, "journal-spare") }, nil, "", 0},
		"a fresh file":  {func(d *simdisk.Disk) error { return empty(d, "journal-new") }, nil, "", 0},
		"nothing wrong": {func(*simdisk.Disk) error { return nil }, nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, base := start(t)
			if err := tc.change(d); err != nil {
				t.Fatal(err)
			}
			j, err := journal.Open(disk{d}, base, journal.Options{Owner: owner})
			if err == nil {
				defer func() {
					if err := j.Close(); err != nil {
						t.Error(err)
					}
				}()
			}
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.file == "" {
				return
			}
			if damage, ok := errors.AsType[*journal.DamageError](err); !ok || damage.File != tc.file || damage.Offset != tc.offset {
				t.Errorf("got %v, want %s at %d", err, tc.file, tc.offset)
			}
		})
	}
}

// empty makes an empty file in place of a segment.
func empty(d *simdisk.Disk, name string) error {
	_, err := d.Create("x")
	return errors.Join(err, d.Rename("x", name))
}

// foreign puts a segment of other data in place of a segment.
func foreign(d *simdisk.Disk, name string, first journal.Number) error {
	if err := empty(d, name); err != nil {
		return err
	}
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	return journal.WriteHeader(f, owner+1, first)
}

// TestStaleSpare: a start does not find the earlier commits of a reused file, although
// such a commit stands where the next commit would, with its number.
func TestStaleSpare(t *testing.T) {
	// The log of other data, of three commits.
	l := fill(t, []int{10, 10, 10}, 0)
	if err := l.disk.Rename(first, "journal-spare"); err != nil {
		t.Fatal(err)
	}
	open := func(base journal.Base) *journal.Journal {
		t.Helper()
		j, err := journal.Open(disk{l.disk}, base, journal.Options{Owner: owner + 1})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	base := newBase()
	j := open(base)
	var b journal.Batch
	b.Put(1, []byte("k"), bytes.Repeat([]byte{9}, 10))
	if err := j.Commit(&b); err != nil {
		t.Fatal(err)
	}
	if names, err := l.disk.List(); err != nil || len(names) != 1 {
		t.Fatalf("the spare file is not used: %v, %v", names, err)
	}
	l.disk.Kill()
	if n := open(base).Stats().Number; n != 1 || base.buckets[1]["k"] != string(bytes.Repeat([]byte{9}, 10)) {
		t.Errorf("the log ends with %d, and the base has %v", n, base.buckets)
	}
}
