package multipaxsys

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/testfuzz"
)

func TestRecord(t *testing.T) {
	const now = 10 * time.Second
	for _, tc := range []struct {
		name string
		ops  []op
		want []verdict
		out  int
	}{
		{"to the limit", []op{{of: 0, latest: now}, {of: 1, latest: now}, {of: 2, latest: now}}, []verdict{granted, granted, refused}, 2},
		{"asked twice", []op{{of: 0, latest: now}, {of: 0, latest: now}}, []verdict{granted, granted}, 1},
		{"released twice", []op{{of: 0, latest: now}, {of: 0, release: true}, {of: 0, release: true}}, []verdict{granted, granted, granted}, 0},
		{"a release bars its acquire", []op{{of: 5, release: true}, {of: 5, latest: now}}, []verdict{granted, tooLate}, 0},
		{"late", []op{{of: 0, latest: now - 1}}, []verdict{tooLate}, 0},
		{"refused and asked again", []op{
			{of: 0, latest: now}, {of: 1, latest: now}, {of: 2, latest: now}, {of: 0, release: true}, {of: 2, latest: now},
		}, []verdict{granted, granted, refused, granted, granted}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := record{limit: 2}
			i := 0
			err := r.apply(7, appendEntry(nil, now, tc.ops), func(o op, v verdict) {
				if o.of != tc.ops[i].of || o.release != tc.ops[i].release || v != tc.want[i] {
					t.Errorf("%+v came to %d, want %+v to come to %d", o, v, tc.ops[i], tc.want[i])
				}
				i++
			})
			if err != nil || i != len(tc.ops) || r.out != tc.out || r.applied != 7 {
				t.Errorf("%v, %d of %d transactions, %d out, want %d", err, i, len(tc.ops), r.out, tc.out)
			}
			if err := r.check(); err != nil {
				t.Error(err)
			}
			again := record{limit: 2}
			if again.restore(7, r.snapshot()); again.out != r.out || !bytes.Equal(again.leases, r.leases) || again.applied != 7 {
				t.Errorf("a snapshot of %+v restores to %+v", r, again)
			}
		})
	}
	if err := (&record{limit: 1, out: 1}).check(); err == nil {
		t.Error("a record that counts what nobody holds is taken")
	}
}

// FuzzEntry: no entry does harm, and apply reports an entry cut short.
func FuzzEntry(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add(appendEntry(nil, time.Second, []op{{of: 3, latest: 2 * time.Second}, {of: 3, release: true}}))
	f.Add([]byte{0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := record{limit: 3}
		if err := r.apply(1, b, nil); err != nil && !errors.Is(err, errEntry) {
			t.Fatal(err)
		}
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
	})
}
