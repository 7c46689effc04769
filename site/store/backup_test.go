package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/site/backup"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// backedUp returns a backup of a store.
func backedUp(t *testing.T, s *store.Store) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Backup(t.Context(), &out, "test"); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// restoredFrom opens a store on a backup in a new directory.
func restoredFrom(t *testing.T, raw []byte) *store.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "data")
	if _, err := store.Restore(dir, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) < 2 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
	o := options(dir)
	o.Incarnation = 0
	return open(t, o)
}

// TestBackupHasEverything: a restored backup has every field of every record, and tells
// what it holds.
func TestBackupHasEverything(t *testing.T) {
	s := open(t, options(t.TempDir()))
	if err := s.Commit(full()); err != nil {
		t.Fatal(err)
	}
	raw := backedUp(t, s)
	want := load(t, s)
	closed(t, s)
	v, err := store.Verify(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if v.Cluster != "prod" || v.Site != "us" || v.Commit != 12 || v.Incarnation != uint64(incarnation) || v.Build != "test" || time.Since(v.Time) > time.Hour ||
		!reflect.DeepEqual(v.Members, []string{"as", "eu", "ux"}) || v.Entities != 2 || v.Leases != 1 || v.Bytes != int64(len(raw)) {
		t.Errorf("%+v", v)
	}
	s = restoredFrom(t, raw)
	if got := load(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	// It goes on from there.
	commit(t, s, 13)
	closed(t, s)
}

// TestBackupOfAnyData: whatever was committed, a restored backup has the same.
func TestBackupOfAnyData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(inMemory(t), "")
		if err != nil {
			rt.Fatal(err)
		}
		o := options(dir)
		o.ChunkBytes = 500
		s, err := store.Open(o)
		if err != nil {
			rt.Fatal(err)
		}
		maps := coretest.NewMemory(incarnation)
		var b batches
		for range rapid.IntRange(0, 6).Draw(rt, "commits") {
			r := b.draw(rt)
			if err := errors.Join(maps.Commit(r), s.Commit(r)); err != nil {
				rt.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := errors.Join(s.Backup(t.Context(), &out, ""), s.Close()); err != nil {
			rt.Fatal(err)
		}
		o.Dir = filepath.Join(dir, "restored")
		if _, err := store.Restore(o.Dir, bytes.NewReader(out.Bytes())); err != nil {
			rt.Fatal(err)
		}
		if s, err = store.Open(o); err != nil {
			rt.Fatal(err)
		}
		got, err := loadAll(s)
		want, _ := maps.Load()
		if err := errors.Join(err, s.Close()); err != nil || !reflect.DeepEqual(got, want) {
			rt.Fatalf("%v: got %+v\nwant %+v", err, got, want)
		}
	})
}

// everyBook is a commit that changes the books of ten entities to its number.
func everyBook(n uint64) *stored.Records {
	r := numberedRecords(n)
	r.Books = nil
	for i := range 10 {
		r.Books = append(r.Books, stored.Books{Name: fmt.Sprint("entity-", i), Generation: 1, Left: core.Tokens(n)})
	}
	r.ForgetBlocks = max(n, 20) - 20
	return r
}

// TestBackupIsOfOneCommit: the backups of a store that commits all the time, with a
// checkpoint under way, each have exactly one commit. It is the last of those before, or
// later.
func TestBackupIsOfOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t.TempDir())
		o.ChunkBytes, o.CheckpointBytes, o.BackupLog = 100, 30_000, 110_000
		s := open(t, o)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for n := uint64(1); ctx.Err() == nil; n++ {
				if err := s.Commit(everyBook(n)); err != nil {
					t.Error(err)
					return
				}
				<-time.After(time.Millisecond)
			}
		}()
		defer closed(t, s)
		defer func() { stop(); <-ended }()
		for i := range 20 {
			<-time.After(time.Duration(37*(i+1)) * time.Millisecond)
			before := s.Stats().Number
			raw := backedUp(t, s)
			r := restoredFrom(t, raw)
			got := load(t, r)
			closed(t, r)
			n := uint64(got.Commits)
			if n < uint64(before) || n > uint64(s.Stats().Number) || len(got.Books) != 10 {
				t.Fatalf("commit %d, with %d before: %d books", n, before, len(got.Books))
			}
			for _, b := range got.Books {
				if uint64(b.Left) != n {
					t.Errorf("books of %s are of commit %d, the backup is of %d", b.Name, b.Left, n)
				}
			}
			blocks := blocksOf(t, got)
			if last := blocks[len(blocks)-1].Sequence; last != n || blocks[0].Sequence != max(n, 20)-20 && n >= 20 {
				t.Errorf("blocks %d to %d, the backup is of %d", blocks[0].Sequence, last, n)
			}
		}
	})
}

// gatedBase is a base that writes nothing while its gate is shut.
type gatedBase struct {
	journal.Base
	gate atomic.Pointer[chan struct{}]
}

func (b *gatedBase) Apply(ops []journal.Op, through *journal.Number) error {
	if gate := b.gate.Load(); gate != nil {
		<-*gate
	}
	return b.Base.Apply(ops, through)
}

// TestBackupHasAllCommitsBefore: a backup that is begun during a checkpoint also has the
// commits that the checkpoint leaves out.
func TestBackupHasAllCommitsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b gatedBase
		s, err := store.OpenWith(options(t.TempDir()), func(disk journal.Base) journal.Base { b.Base = disk; return &b })
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, s)
		commit(t, s, 1)
		gate := make(chan struct{})
		b.gate.Store(&gate)
		<-time.After(2 * time.Minute) // a checkpoint waits at the gate
		commit(t, s, 2)
		time.AfterFunc(time.Minute, func() { close(gate) })
		v, err := store.Verify(bytes.NewReader(backedUp(t, s)))
		if err != nil || v.Commit != 2 {
			t.Errorf("commit %d: %v", v.Commit, err)
		}
	})
}

// stuck is a writer that does not return before it is let go.
type stuck struct {
	reached, let chan struct{}
}

func newStuck() *stuck { return &stuck{make(chan struct{}, 100), make(chan struct{})} }

func (w *stuck) Write(b []byte) (int, error) {
	w.reached <- struct{}{}
	<-w.let
	return len(b), nil
}

// TestSlowBackupIsEnded: a backup whose reader does not go on ends at each of the bounds,
// while commits go on. Afterwards another backup can be made.
func TestSlowBackupIsEnded(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(o *store.Options)
		pause time.Duration
		want  string
	}{
		{"time", func(o *store.Options) { o.BackupTime = time.Minute }, time.Second, "more than 1m0s"},
		{"log", func(o *store.Options) { o.BackupLog = 1 << 20 }, time.Millisecond, "at most 1048576"},
		{"log by default", func(o *store.Options) { o.CheckpointBytes = 1 << 20 }, time.Millisecond, "at most 2097152"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(t.TempDir())
				o.CheckpointBytes, o.CheckpointEvery = 1<<30, time.Second
				o.BackupTime = 24 * time.Hour
				c.set(&o)
				s := open(t, o)
				commit(t, s, 1)
				w, done := newStuck(), make(chan error, 1)
				go func() { done <- s.Backup(t.Context(), w, "") }()
				defer func() {
					close(w.let)
					if err := <-done; !errors.Is(err, store.ErrBackupTooSlow) || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%v, want %q", err, c.want)
					}
					closed(t, s)
				}()
				<-w.reached
				if err := s.Backup(t.Context(), io.Discard, ""); !errors.Is(err, store.ErrBackupUnderWay) {
					t.Errorf("a second backup: %v", err)
				}
				var r stored.Records
				for n := uint64(2); s.Backup(t.Context(), io.Discard, "") != nil; n++ {
					if n == 10_000 {
						t.Fatal("the backup is not ended")
					}
					r.Commits = message.Commits(n)
					r.Block = stored.Block{Sequence: n, Records: make([]stored.Request, 500)}
					if err := s.Commit(&r); err != nil {
						t.Fatal(err)
					}
					if most := max(o.BackupLog, 2*o.CheckpointBytes) + 1<<20; s.Stats().Backlog > most {
						t.Fatalf("the log has %d bytes, more than %d", s.Stats().Backlog, most)
					}
					<-time.After(c.pause)
				}
			})
		})
	}
}

// TestBackupOfAClosingStore: the end of a store ends a backup, though its reader does
// not go on.
func TestBackupOfAClosingStore(t *testing.T) {
	s := open(t, options(t.TempDir()))
	commit(t, s, 1)
	w, done := newStuck(), make(chan error, 1)
	go func() { done <- s.Backup(t.Context(), w, "") }()
	<-w.reached
	closed(t, s)
	close(w.let)
	if err := <-done; err == nil {
		t.Error("the backup is complete")
	}
	if err := s.Backup(t.Context(), io.Discard, ""); err == nil {
		t.Error("a closed store makes a backup")
	}
}

// TestBackupFailsAtAnyWrite: a failed write fails the backup, be it the last write, behind
// which the image has come to its end.
func TestBackupFailsAtAnyWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b failingBase
		s := onFailingBase(t, t.TempDir(), &b)
		commit(t, s, 1)
		n := 0
		backup := func(failAt int) error {
			n = 0
			return s.Backup(t.Context(), writes(func() error {
				if n++; n == failAt {
					<-time.After(time.Second)
					return io.ErrShortWrite
				}
				return nil
			}), "")
		}
		if err := backup(0); err != nil || n == 0 {
			t.Fatalf("%d writes, %v", n, err)
		}
		for at := range n {
			if err := backup(at + 1); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("write %d fails: %v", at+1, err)
			}
		}
		closed(t, s)
	})
}

// TestBackupFailures: failures of the writer, of the caller and of the disk are told, and
// a later backup succeeds where it can.
func TestBackupFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b failingBase
		s := onFailingBase(t, t.TempDir(), &b)
		commit(t, s, 1)
		broken := errors.New("the reader went away")
		if err := s.Backup(t.Context(), writes(func() error { return broken }), ""); !errors.Is(err, broken) {
			t.Errorf("a writer that fails: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(broken)
		if err := s.Backup(ctx, io.Discard, ""); !errors.Is(err, broken) {
			t.Errorf("a caller that gave up: %v", err)
		}
		backedUp(t, s)
		b.full.Store(true)
		commit(t, s, 2)
		if err := s.Backup(t.Context(), io.Discard, ""); err == nil {
			t.Error("a backup without what the disk refuses")
		}
		_ = s.Close() // it tells the failure again
	})
}

type writes func() error

func (w writes) Write(b []byte) (int, error) { return len(b), w() }

// rewritten returns a backup in which each record is what change makes of it.
func rewritten(t *testing.T, raw []byte, header func(*backup.Header), change func(*backup.Record) bool) []byte {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := r.Header()
	header(&h)
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, &h)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !change(&rec) {
			continue
		}
		if err := w.Put(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRestoreRefuses: a bad backup, and a directory in use, are refused. The directory is
// as it was before.
func TestRestoreRefuses(t *testing.T) {
	s := open(t, options(t.TempDir()))
	if err := s.Commit(full()); err != nil {
		t.Fatal(err)
	}
	raw := backedUp(t, s)
	closed(t, s)
	same := func(*backup.Header) {}
	keep := func(*backup.Record) bool { return true }
	inBucket := func(b uint8, change func(*backup.Record) bool) func(*backup.Record) bool {
		return func(r *backup.Record) bool { return r.Bucket != b || change(r) }
	}
	cut := func(r *backup.Record) bool { r.Value = r.Value[:len(r.Value)-1]; return true }
	gone := func(*backup.Record) bool { return false }
	flipped := bytes.Clone(raw)
	flipped[len(raw)/2] ^= 4
	for name, b := range map[string][]byte{
		"a bit":              flipped,
		"cut off":            raw[:len(raw)-1],
		"another commit":     rewritten(t, raw, func(h *backup.Header) { h.Commit++ }, keep),
		"another data":       rewritten(t, raw, func(h *backup.Header) { h.Incarnation++ }, keep),
		"another site":       rewritten(t, raw, func(h *backup.Header) { h.Site = "eu" }, keep),
		"another cluster":    rewritten(t, raw, func(h *backup.Header) { h.Cluster = "test" }, keep),
		"other members":      rewritten(t, raw, func(h *backup.Header) { h.Members = h.Members[1:] }, keep),
		"no identity":        rewritten(t, raw, same, inBucket(1, gone)),
		"no guard":           rewritten(t, raw, same, inBucket(2, gone)),
		"an entity cut off":  rewritten(t, raw, same, inBucket(4, cut)),
		"a block cut off":    rewritten(t, raw, same, inBucket(7, cut)),
		"a key of no number": rewritten(t, raw, same, inBucket(7, func(r *backup.Record) bool { r.Key = r.Key[1:]; return true })),
		"a bucket unknown":   rewritten(t, raw, same, inBucket(10, func(r *backup.Record) bool { r.Bucket = 11; return true })),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := store.Verify(bytes.NewReader(b)); err == nil {
				t.Error("verified")
			}
			dir := t.TempDir()
			if _, err := store.Restore(dir, bytes.NewReader(b)); err == nil {
				t.Error("restored")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("left is %v: %v", entries, err)
			}
		})
	}
	used := t.TempDir()
	closed(t, open(t, options(used)))
	before := logOf(t, used)
	if _, err := store.Restore(used, bytes.NewReader(raw)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a used directory: %v", err)
	}
	if got := load(t, open(t, options(used))); got.Commits != 0 || !reflect.DeepEqual(before, logOf(t, used)) && got.Incarnation != incarnation {
		t.Errorf("the data there is %+v", got)
	}
}

// TestRestoreAfterOneCutOff: what a restore that was cut off has left is removed.
func TestRestoreAfterOneCutOff(t *testing.T) {
	s := open(t, options(t.TempDir()))
	commit(t, s, 1)
	raw := backedUp(t, s)
	closed(t, s)
	dir := t.TempDir()
	left := filepath.Join(dir, "restoring-123")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "site.db"), []byte("part"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(dir, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
