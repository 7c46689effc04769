package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/testfuzz"
)

var owner = Header{
	Cluster: "prod", Site: "us", Members: []string{"as", "eu", "us"}, Incarnation: 0xfeed, Commit: 4711,
	Time: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Build: "v1",
}

// some returns n records of several buckets in order.
func some(n, size int) []Record {
	all := make([]Record, n)
	for i := range all {
		all[i] = Record{Bucket: uint8(1 + i*5/n), Key: fmt.Appendf(nil, "%08d", i), Value: bytes.Repeat(fmt.Appendf(nil, "%d,", i), size)}
	}
	return all
}

// written returns a backup of records.
func written(tb testing.TB, records []Record) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, &owner)
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range records {
		if err := w.Put(r); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// read reads a backup to its end.
func read(from io.Reader) (h Header, records []Record, err error) {
	r, err := NewReader(from)
	if err != nil {
		return Header{}, nil, err
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return r.Header(), records, err
		}
		records = append(records, Record{rec.Bucket, slices.Clone(rec.Key), slices.Clone(rec.Value)})
	}
}

// TestReadsWhatWasWritten: the header and the records come back, also of a backup
// without any record and of a backup with values larger than a block.
func TestReadsWhatWasWritten(t *testing.T) {
	large := some(5, 100_000)
	large[2].Value, large[3].Value = nil, bytes.Repeat([]byte{7}, 3<<20)
	for name, records := range map[string][]Record{"none": nil, "few": some(3, 2), "many": some(20_000, 10), "large": large} {
		t.Run(name, func(t *testing.T) {
			raw := written(t, records)
			h, got, err := read(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if !h.Time.Equal(owner.Time) || h.Cluster != "prod" || h.Site != "us" || len(h.Members) != 3 || h.Incarnation != 0xfeed || h.Commit != 4711 {
				t.Errorf("the header is %+v", h)
			}
			if len(got) != len(records) {
				t.Fatalf("%d records, want %d", len(got), len(records))
			}
			for i, r := range records {
				if g := got[i]; g.Bucket != r.Bucket || !bytes.Equal(g.Key, r.Key) || !bytes.Equal(g.Value, r.Value) {
					t.Fatalf("record %d is %d %s", i, g.Bucket, g.Key)
				}
			}
		})
	}
}

// blocks returns the places of a backup's blocks, and of its end.
func blocks(raw []byte) []int {
	at := []int{fixedBytes + int(le.Uint32(raw[12:]))}
	for at[len(at)-1] < len(raw) {
		h, _ := decodeHead(raw[at[len(at)-1]:])
		at = append(at, at[len(at)-1]+headBytes+int(h.stored))
	}
	return at
}

// corrupt changes a backup at random, and tells how.
func corrupt(rng *rand.Rand, raw []byte) (changed []byte, how string) {
	b := slices.Clone(raw)
	at := blocks(raw)
	n := len(at) - 1
	block := func(i int) []byte { return raw[at[i]:at[i+1]] }
	join := func(order ...int) []byte {
		b := slices.Clone(raw[:at[0]])
		for _, i := range order {
			b = append(b, block(i)...)
		}
		return b
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	i, j := rng.IntN(n), rng.IntN(n)
	switch rng.IntN(8) {
	case 0:
		i := rng.IntN(len(b))
		b[i] ^= 1 << rng.IntN(8)
		return b, fmt.Sprintf("a bit of byte %d is turned", i)
	case 1:
		i := rng.IntN(len(b))
		return b[:i], fmt.Sprintf("cut off at %d", i)
	case 2:
		i := rng.IntN(len(b))
		m := min(len(b)-i, 1+rng.IntN(600))
		for k := range m {
			b[i+k] = byte(rng.Uint32())
		}
		return b, fmt.Sprintf("%d bytes from %d on are random", m, i)
	case 3:
		i := rng.IntN(len(b))
		m := min(len(b)-i, 1+rng.IntN(600))
		return slices.Delete(b, i, i+m), fmt.Sprintf("%d bytes at %d are gone", m, i)
	case 4:
		order[i], order[j] = order[j], order[i]
		return join(order...), fmt.Sprintf("blocks %d and %d have changed places", i, j)
	case 5:
		return join(slices.Insert(order, j, i)...), fmt.Sprintf("block %d stands at %d once more", i, j)
	case 6:
		return join(slices.Delete(order, i, i+1)...), fmt.Sprintf("block %d is gone", i)
	default:
		return append(b, block(i)[:1+rng.IntN(8)]...), "something follows"
	}
}

// TestCorruptions: 1,000 random corruptions of a backup are refused each.
func TestCorruptions(t *testing.T) {
	raw := written(t, some(18_000, 20))
	if n := len(blocks(raw)) - 1; n < 8 {
		t.Fatalf("the backup has %d blocks", n)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < 1000; {
		bad, how := corrupt(rng, raw)
		if bytes.Equal(bad, raw) {
			continue
		}
		i++
		if _, _, err := read(bytes.NewReader(bad)); !errors.Is(err, ErrDamaged) && !errors.Is(err, errUnknown) {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// TestNoRecordOfADamagedBlock: only records of blocks before the first damage are handed
// out.
func TestNoRecordOfADamagedBlock(t *testing.T) {
	raw := written(t, some(18_000, 5))
	at := blocks(raw)
	h, _ := decodeHead(raw[at[0]:])
	good := int(h.count)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		b := slices.Clone(raw)
		i := at[1] + headBytes + rng.IntN(at[2]-at[1]-headBytes)
		b[i] ^= 1 << rng.IntN(8)
		if _, got, err := read(bytes.NewReader(b)); !errors.Is(err, ErrDamaged) || len(got) != good {
			t.Fatalf("byte %d: %d records, %d are before it: %v", i, len(got), good, err)
		}
	}
}

// rewritten returns a backup in which the head and the content of a block were changed,
// and all sums fit again except for the checksum of the whole.
func rewritten(raw []byte, i int, change func(h *head, content []byte) []byte) []byte {
	at := blocks(raw)
	h, _ := decodeHead(raw[at[i]:])
	content := change(&h, slices.Clone(raw[at[i]+headBytes:at[i+1]]))
	b := h.encode(slices.Clone(raw[:at[i]]), le.Uint32(raw[16:]), content)
	return append(append(b, content...), raw[at[i+1]:]...)
}

// TestEachSumCounts: a change is found by each of the sums, even if all others fit.
func TestEachSumCounts(t *testing.T) {
	raw := written(t, some(30_000, 20))
	at := blocks(raw)
	end := len(at) - 2
	header := slices.Clone(raw)
	copy(header[fixedBytes:], strings.Replace(string(raw[fixedBytes:at[0]]), "prod", "test", 1))
	other := written(t, some(30_000, 21))
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"header", header, "the sum of the header"},
		{"number", rewritten(raw, 2, func(h *head, c []byte) []byte { h.number++; return c }), "block 3 stands where block 2 belongs"},
		{"kind", rewritten(raw, 2, func(h *head, c []byte) []byte { h.kind = 9; return c }), "unknown kind 9"},
		{"raw length", rewritten(raw, 2, func(h *head, c []byte) []byte { h.raw--; return c }), "its head says"},
		{"count", rewritten(raw, 2, func(h *head, c []byte) []byte { h.count--; return c }), "more records"},
		{"count beyond", rewritten(raw, 2, func(h *head, c []byte) []byte { h.count++; return c }), "fewer records"},
		{"no records", rewritten(raw, 2, func(h *head, c []byte) []byte { h.count = 0; return c }), "no records"},
		{"whole", rewritten(raw, end, func(_ *head, c []byte) []byte { c[8] ^= 1; return c }), "the checksum of the whole"},
		{"records", rewritten(raw, end, func(_ *head, c []byte) []byte { c[0]++; return c }), "and its end says"},
		{"end cut", rewritten(raw, end, func(h *head, c []byte) []byte { h.stored--; return c[:len(c)-1] }), "the end has"},
		// Both are whole, and have the same header.
		{"block of another", append(append(slices.Clone(raw[:at[1]]), other[blocks(other)[1]:blocks(other)[2]]...), raw[at[2]:]...), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := read(bytes.NewReader(c.raw))
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestBoundsOfMemory: a head that claims much costs no more memory than the bytes behind it.
func TestBoundsOfMemory(t *testing.T) {
	raw := written(t, some(10, 2))
	at := blocks(raw)
	huge := rewritten(raw, 0, func(h *head, c []byte) []byte { h.raw, h.stored, h.count = maxBlock, maxBlock, 1<<32-1; return c })
	beyond := rewritten(raw, 0, func(h *head, c []byte) []byte { h.stored = 1<<32 - 1; return c })
	header := slices.Clone(raw[:at[0]])
	le.PutUint32(header[12:], 1<<32-1)
	for _, b := range [][]byte{huge, beyond, header} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := read(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		if grew := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrDamaged) || grew > 8<<20 {
			t.Errorf("%d bytes were allocated: %v", grew, err)
		}
	}
}

// TestUnknownFiles: files that are no backups, or of a later version, are refused as
// such.
func TestUnknownFiles(t *testing.T) {
	later := written(t, nil)
	le.PutUint32(later[8:], version+1)
	for _, b := range [][]byte{nil, []byte("samyabk"), []byte("some other file, long enough"), later} {
		if _, _, err := read(bytes.NewReader(b)); !errors.Is(err, errUnknown) {
			t.Errorf("%.20q: %v", b, err)
		}
	}
}

// TestWriterRefuses: records out of order, or too large, and headers too large.
func TestWriterRefuses(t *testing.T) {
	begin := func() *Writer {
		w, err := NewWriter(io.Discard, &owner)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Put(Record{Bucket: 2, Key: []byte("b")}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, r := range []Record{{2, []byte("b"), nil}, {2, []byte("a"), nil}, {1, []byte("c"), nil}} {
		if err := begin().Put(r); !errors.Is(err, errOrder) {
			t.Errorf("%d %s: %v", r.Bucket, r.Key, err)
		}
	}
	w := begin()
	if err := w.Put(Record{3, nil, make([]byte, maxBlock)}); !errors.Is(err, errTooLarge) {
		t.Errorf("a large record: %v", err)
	}
	if err := w.Close(); err == nil {
		t.Error("a backup with a failure was completed")
	}
	long := owner
	long.Members = slices.Repeat([]string{strings.Repeat("m", 60)}, 2000)
	if _, err := NewWriter(io.Discard, &long); !errors.Is(err, errTooLarge) {
		t.Errorf("a large header: %v", err)
	}
}

// TestReaderTellsErrors: an error of reading is no damage.
func TestReaderTellsErrors(t *testing.T) {
	raw := written(t, some(30_000, 20))
	at := blocks(raw)
	broken := errors.New("the disk fails")
	for _, n := range []int{3, fixedBytes + 5, at[1] + 7, at[1] + headBytes + 9, len(raw)} {
		_, _, err := read(io.MultiReader(bytes.NewReader(raw[:n]), failing{broken}))
		if !errors.Is(err, broken) || errors.Is(err, ErrDamaged) || errors.Is(err, errUnknown) {
			t.Errorf("behind %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzRead: reading any bytes ends, with records in order. Bytes without an error are a
// backup: its records, written again, are read as the same.
func FuzzRead(tf *testing.F) {
	f := testfuzz.On(tf)
	raw := written(f, some(40, 3))
	at := blocks(raw)
	f.Add(raw)
	f.Add(written(f, nil))
	f.Add(raw[:at[1]])
	f.Add(rewritten(raw, 0, func(h *head, c []byte) []byte { h.count++; return c }))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, records, err := read(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, errUnknown) {
				t.Fatal(err)
			}
			return
		}
		_, again, err := read(bytes.NewReader(written(t, records)))
		if err != nil || len(again) != len(records) {
			t.Fatalf("%d records are %d: %v", len(records), len(again), err)
		}
	})
}

// FuzzRecords: taking records out of any block ends. Without damage the records, packed
// again, are the block.
func FuzzRecords(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte{1, 1, 'a', 1, 'b', 2, 0, 0}, uint32(2))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, count uint32) {
		r := &Reader{raw: b, left: count}
		var w Writer
		for r.left > 0 {
			rec, err := r.record()
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				return
			}
			if err := w.Put(rec); err != nil && len(b) < blockBytes {
				t.Fatal(err)
			}
		}
		if count > 0 && len(w.raw) > len(b) {
			t.Fatalf("%x is packed as %x", b, w.raw)
		}
	})
}
