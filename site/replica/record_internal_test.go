package replica

import (
	"bytes"
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/site/journal"
)

// TestRecord: records come back, and every turned bit is noticed.
func TestRecord(t *testing.T) {
	payload := []byte("some operations")
	r := record{term: 7, run: 9, before: 8, length: len(payload), payload: payload}
	r.sum = r.sumOf(5, payload)
	raw := r.encode(nil)
	got, err := decode(5, raw)
	if err != nil || got.term != 7 || got.run != 9 || got.before != 8 || !bytes.Equal(got.payload, payload) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := decode(6, raw); !errors.Is(err, errRecord) {
		t.Errorf("a record under another number: %v", err)
	}
	for bit := range 8 * len(raw) {
		turned := bytes.Clone(raw)
		turned[bit/8] ^= 1 << (bit % 8)
		got, err := decode(5, turned)
		// The term is no part of the sum: it only names who put the record. The second
		// byte is free.
		if bit/8 >= 4 && bit/8 < 12 || bit/8 == 1 {
			continue
		}
		if err == nil && got.parts == 0 {
			t.Errorf("bit %d is turned, and the record is read as %+v", bit, got)
		}
	}
}

// FuzzDecode: no record crashes the decoder, and a record that is read comes back.
func FuzzDecode(tf *testing.F) {
	f := testfuzz.On(tf)
	payload := []byte("payload")
	r := record{term: 1, run: 2, before: 2, length: 7, payload: payload}
	r.sum = r.sumOf(3, payload)
	f.Add(uint64(3), r.encode(nil))
	f.Add(uint64(3), (&record{term: 1, run: 2, before: 2, length: 7, sum: r.sum, parts: 2}).encode(nil))
	f.Add(uint64(0), []byte{recordVersion})
	f.Fuzz(func(t *testing.T, n uint64, raw []byte) {
		r, err := decode(journal.Number(n), raw)
		if err != nil {
			return
		}
		again, err := decode(journal.Number(n), r.encode(nil))
		if err != nil || again.term != r.term || again.run != r.run || again.before != r.before || again.parts != r.parts || !bytes.Equal(again.payload, r.payload) {
			t.Errorf("%+v came back as %+v: %v", r, again, err)
		}
	})
}

// TestTrimmable: commits stay until two nodes have them, or all nodes if there are fewer; a
// node that copies keeps all behind its beginning; the last commit stays.
func TestTrimmable(t *testing.T) {
	has := func(n journal.Number) Standing { return Standing{Through: n} }
	copies := func(n journal.Number) Standing { return Standing{Through: n, Copies: true} }
	for name, c := range map[string]struct {
		nodes []Standing
		last  journal.Number
		want  journal.Number
	}{
		"nothing was ever told":    {nil, 10, 0},
		"an empty log":             {[]Standing{has(0)}, 0, 0},
		"a node alone":             {[]Standing{has(7)}, 10, 7},
		"a node alone has all":     {[]Standing{has(10)}, 10, 9},
		"two nodes":                {[]Standing{has(7), has(4)}, 10, 4},
		"the second of three":      {[]Standing{has(7), has(1), has(5)}, 10, 5},
		"all have all":             {[]Standing{has(10), has(10), has(10)}, 10, 9},
		"a node copies":            {[]Standing{has(9), has(8), copies(3)}, 10, 3},
		"a node begins to copy":    {[]Standing{has(9), has(8), copies(0)}, 10, 0},
		"a node alone, and a copy": {[]Standing{has(9), copies(5)}, 10, 5},
		"only copies":              {[]Standing{copies(5)}, 10, 0},
	} {
		if got := trimmable(c.nodes, c.last); got != c.want {
			t.Errorf("%s: trimmed through %d, want %d", name, got, c.want)
		}
	}
}
