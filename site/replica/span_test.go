package replica_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

// TestRestoredAndGrown has the store put back to a copy without some commits of a node, and
// another node go on there. The first node notices another commit in the place of its last
// one, by that commit or, after a trim, by the next commit.
func TestRestoredAndGrown(t *testing.T) {
	for name, c := range map[string]struct {
		lost, more int
		trims      bool
		want       error
	}{
		"fewer commits":                 {lost: 3, more: 2, want: replica.ErrLost},
		"as many commits":               {lost: 3, more: 3, want: replica.ErrLost},
		"more commits":                  {lost: 3, more: 5, want: replica.ErrLost},
		"the next commit is the first":  {lost: 3, more: 4, trims: true, want: replica.ErrLost},
		"later commits are the first":   {lost: 3, more: 6, trims: true, want: replica.ErrBehind},
		"none of its commits was lost":  {more: 4},
		"none was lost, all is trimmed": {more: 1, trims: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := replicatest.New()
			a, b := newNode("a", store.At(nil), 1), newNode("b", store.At(nil), 2)
			if err := errors.Join(a.open(), b.open(), a.lead()); err != nil {
				t.Fatal(err)
			}
			commits(t, a, 5, 10)
			if _, err := b.log.Follow(0); err != nil {
				t.Fatal(err)
			}
			before := store.Copy()
			commits(t, a, c.lost, 10)
			if err := a.log.Close(); err != nil {
				t.Fatal(err)
			}
			if c.lost > 0 {
				store.Restore(before)
			}
			b.runs = 70 // a node's start has a name of its own
			if err := b.lead(); err != nil {
				t.Fatal(err)
			}
			commits(t, b, c.more, 10)
			if c.trims {
				through := journal.Number(5 + c.more - 1)
				if err := errors.Join(journaltest.Whole(b.log), b.log.Tell(replica.Standing{Through: through})); err != nil {
					t.Fatal(err)
				}
				if got, err := b.log.Trim(); got != through || err != nil {
					t.Fatalf("trimmed through commit %d, want %d: %v", got, through, err)
				}
			}
			if err := a.open(); err != nil {
				t.Fatal(err)
			}
			if _, err := a.log.Follow(0); !errors.Is(err, c.want) {
				t.Errorf("it follows: %v, want %v", err, c.want)
			}
		})
	}
}

// TestSpansFile: a file keeps the last spans, and a damaged file is an error.
func TestSpansFile(t *testing.T) {
	file := replica.SpansFile(filepath.Join(t.TempDir(), "runs"))
	for _, want := range [][]replica.Span{nil, {{First: 1, Run: 1 << 63}}, {{First: 1, Run: 1 << 63}, {First: 7, Run: 2}}, nil} {
		if want != nil {
			if err := file.Save(want); err != nil {
				t.Fatal(err)
			}
		} else if err := file.Clear(); err != nil {
			t.Fatal(err)
		}
		if got, err := file.Load(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v came back as %+v: %v", want, got, err)
		}
	}
	if err := os.WriteFile(string(file), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := file.Load(); err == nil {
		t.Errorf("a damaged file is read as %+v", got)
	}
	if err := replica.SpansFile(filepath.Join(string(file), "below")).Save(nil); err == nil {
		t.Error("a file below a file is saved")
	}
}

// FuzzSpansFile: no file crashes its reader, and the spans read come back.
func FuzzSpansFile(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte(`{"spans":[{"first":1,"run":"9223372036854775808"},{"first":7,"run":"2"}]}`))
	f.Add([]byte(`{"spans":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file := replica.SpansFile(filepath.Join(t.TempDir(), "runs"))
		if err := os.WriteFile(string(file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := file.Load()
		if err != nil {
			return
		}
		again := file.Save(got)
		if back, err := file.Load(); again != nil || err != nil || !slices.Equal(back, got) {
			t.Errorf("%+v came back as %+v: %v, %v", got, back, again, err)
		}
	})
}
