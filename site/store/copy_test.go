package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
)

// TestCopy: the parts of a base that goes on changing, with the commits behind the first
// part, make the state of the last commit. A copy that is cut off goes on where it was.
func TestCopy(t *testing.T) {
	var logged []*journal.Batch
	record := func(local *journal.Journal) (journal.Log, error) {
		return &recorder{Journal: local, logged: &logged}, nil
	}
	o := Options{Dir: t.TempDir(), Cluster: "c", Site: "us", Members: []core.SiteID{"us"}, Incarnation: 7, Over: record}
	if err := MarkNode(o.Dir); err != nil {
		t.Fatal(err)
	}
	from, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(round int) {
		t.Helper()
		for i := range 20 {
			name := fmt.Sprintf("e%d", (7*i+round)%50)
			r := &stored.Records{Books: []stored.Books{{Name: name, Generation: 1, Left: core.Tokens(round)}}}
			if i%5 == round%5 {
				r = &stored.Records{Deleted: []string{name}}
			}
			if err := from.Commit(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := from.checkpoints.whole(from); err != nil {
			t.Fatal(err)
		}
	}
	commit(0)
	dir := t.TempDir()
	var pinned journal.Number
	parts, cut := 0, errors.New("the connection is cut")
	fetch := func(_ context.Context, after Cursor) (Page, error) {
		if parts++; parts == 4 {
			return Page{}, cut
		}
		p, err := from.PageOf(after, 100)
		commit(parts)
		return p, err
	}
	pin := func(n journal.Number) error { pinned = n; return nil }
	reaches := func(n journal.Number) (bool, error) { return n == pinned, nil }
	if err := Copy(t.Context(), dir, 7, source{fetch, pin, reaches}); !errors.Is(err, cut) {
		t.Fatalf("cut off: %v", err)
	}
	if has, err := Exists(dir); has || err != nil {
		t.Fatalf("a part of a copy counts as data: %t, %v", has, err)
	}
	before := parts
	if err := Copy(t.Context(), dir, 7, source{fetch, pin, reaches}); err != nil {
		t.Fatal(err)
	}
	if parts-before < 2 {
		t.Errorf("%d parts after the cut: the test shows nothing", parts-before)
	}
	if _, err := os.Stat(filepath.Join(dir, copyName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the copy is left: %v", err)
	}
	o.Dir, o.Over = dir, func(local *journal.Journal) (journal.Log, error) {
		if got := local.Stats().Number; got != pinned {
			t.Errorf("the copy ends with commit %d, want %d", got, pinned)
		}
		for _, b := range logged[pinned:] {
			if err := local.Commit(b); err != nil {
				return nil, err
			}
		}
		return local, nil
	}
	to, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := from.Load()
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*stored.Restored{&want, &got} {
		if _, err := r.AllBlocks(); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); a != b {
		t.Errorf("the copy is\n%s\nwant\n%s", b, a)
	}
	if err := errors.Join(from.Close(), to.Close()); err != nil {
		t.Error(err)
	}
}

// source is a node to copy from.
type source struct {
	fetch   func(context.Context, Cursor) (Page, error)
	pin     func(journal.Number) error
	reaches func(journal.Number) (bool, error)
}

// Fetch implements Source.
func (s source) Fetch(ctx context.Context, after Cursor) (Page, error) { return s.fetch(ctx, after) }

// Pin implements Source.
func (s source) Pin(n journal.Number) error { return s.pin(n) }

// Reaches implements Source.
func (s source) Reaches(n journal.Number) (bool, error) { return s.reaches(n) }

// recorder keeps a copy of all commits.
type recorder struct {
	*journal.Journal
	logged *[]*journal.Batch
}

// Append implements journal.Log.
func (r *recorder) Append(b *journal.Batch) (journal.Number, error) {
	kept := new(journal.Batch)
	if err := kept.Set(bytes.Clone(b.Payload())); err != nil {
		return 0, err
	}
	*r.logged = append(*r.logged, kept)
	return r.Journal.Append(b)
}

// TestDamagedPart: a part that was changed on its way is refused.
func TestDamagedPart(t *testing.T) {
	fetch := func(context.Context, Cursor) (Page, error) {
		p := Page{Records: []journal.Op{{Kind: journal.Put, Bucket: bucketBooks, Key: []byte("e"), Value: []byte("v")}}}
		p.Sum = p.sum() + 1
		return p, nil
	}
	pin := func(journal.Number) error { return nil }
	if err := Copy(t.Context(), t.TempDir(), 7, source{fetch, pin, nil}); !errors.Is(err, errPage) {
		t.Errorf("error %v", err)
	}
}

// TestNodeAlone: the directory of a node is not opened as that of a site of a single
// process, whose log would be the directory's.
func TestNodeAlone(t *testing.T) {
	dir := t.TempDir()
	if err := MarkNode(dir); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(Options{Dir: dir, Cluster: "c", Site: "us", Members: []core.SiteID{"us"}}); !errors.Is(err, ErrNode) {
		t.Errorf("opened: %v, %v", s, err)
	}
}
