package store_test

import (
	"errors"
	"fmt"
	stdmaps "maps"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

func commit(t *testing.T, s *store.Store, n uint64) {
	t.Helper()
	if err := s.Commit(numberedRecords(n)); err != nil {
		t.Fatal(err)
	}
}

// numberedRecords is a commit of some hundred bytes.
func numberedRecords(n uint64) *stored.Records {
	return &stored.Records{
		Commits: message.Commits(n), Books: []stored.Books{{Name: "e", Generation: 1, Left: core.Tokens(n)}},
		Block: stored.Block{Sequence: n, Records: make([]stored.Request, 20)},
	}
}

// TestOldLogIsCarriedOver: a commit is carried over from the log within two minutes.
func TestOldLogIsCarriedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, options(t.TempDir()))
		defer closed(t, s)
		commit(t, s, 1)
		if st := s.Stats(); st.Through != 0 || st.Number != 1 || st.Backlog == 0 || st.Checkpoints != 0 {
			t.Errorf("after a commit: %+v", st)
		}
		<-time.After(2 * time.Minute)
		if st := s.Stats(); st.Through != 1 || st.Backlog != 0 || st.Checkpoints != 1 {
			t.Errorf("after two minutes: %+v", st)
		}
	})
}

// TestLongLogIsCarriedOver: a log becomes no longer than five times CheckpointBytes, and
// a restart finds all commits.
func TestLongLogIsCarriedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t.TempDir())
		o.CheckpointBytes = 10_000
		s := open(t, o)
		longest := int64(0)
		for n := range uint64(1000) {
			commit(t, s, n+1)
			longest = max(longest, s.Stats().Backlog)
		}
		if longest < o.CheckpointBytes || longest > 5*o.CheckpointBytes {
			t.Errorf("the log was up to %d bytes long, wanted are %d", longest, o.CheckpointBytes)
		}
		if err := store.Abandon(s); err != nil {
			t.Fatal(err)
		}
		s = open(t, o)
		defer closed(t, s)
		if r := load(t, s); r.Commits != 1000 || len(blocksOf(t, r)) != 1000 || r.Books[0].Left != 1000 {
			t.Errorf("commit %d, %d blocks, %+v", r.Commits, len(blocksOf(t, r)), r.Books)
		}
	})
}

// failingBase is a base in which there is no space while full is set.
type failingBase struct {
	journal.Base
	full atomic.Bool
}

func (b *failingBase) Apply(ops []journal.Op, through *journal.Number) error {
	if b.full.Load() {
		return syscall.ENOSPC
	}
	return b.Base.Apply(ops, through)
}

// onFailingBase opens a store on real files, with a base that can be made to fail.
func onFailingBase(t *testing.T, dir string, b *failingBase) *store.Store {
	t.Helper()
	o := options(dir)
	o.CheckpointBytes = 10_000
	s, err := store.OpenWith(o, func(disk journal.Base) journal.Base { b.Base = disk; return b })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFailedCheckpoint: when the log cannot be carried over, a later commit tells it and
// the store is of no use. A start that can carry it over finds all commits.
func TestFailedCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var b failingBase
		s := onFailingBase(t, dir, &b)
		b.full.Store(true)
		var err error
		n := uint64(0)
		for ; err == nil && n < 1000; n++ {
			err = s.Commit(numberedRecords(n + 1))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d commits, %v", n, err)
		}
		if err := s.Commit(numberedRecords(n)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a commit after that: %v", err)
		}
		if _, err := s.Load(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a load after that: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("what a commit has told is told again: %v", err)
		}
		if _, err := store.OpenWith(options(dir), func(disk journal.Base) journal.Base { b.Base = disk; return &b }); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a start without space: %v", err)
		}
		b.full.Store(false)
		s = onFailingBase(t, dir, &b)
		if r := load(t, s); r.Commits < message.Commits(n-1) || len(blocksOf(t, r)) != int(r.Commits) {
			t.Errorf("of %d commits there are %d, %d blocks", n-1, r.Commits, len(blocksOf(t, r)))
		}
		// A failure that no commit has told of is told at the end.
		commit(t, s, n+1)
		b.full.Store(true)
		<-time.After(2 * time.Minute)
		if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a failure in the background, and Close says %v", err)
		}
	})
}

// TestDamagedLog: a start says where the log is damaged.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, options(dir))
	for n := range uint64(3) {
		commit(t, s, n+1)
	}
	want := s.Stats()
	if err := store.Abandon(s); err != nil {
		t.Fatal(err)
	}
	const name = "journal-0000000000000001"
	f, err := journal.OSDir(dir).Open(name)
	if err == nil {
		_, err = f.WriteAt([]byte{0xff}, 600)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(options(dir))
	damage, ok := errors.AsType[*journal.DamageError](err)
	if !errors.Is(err, store.ErrDamaged) || !ok || damage.File != name || damage.Offset != 512 {
		t.Errorf("of %+v: %v", want, err)
	}
}

// TestOpenOn: a store on a given log and base carries nothing over by itself, except
// where a commit would have to wait for it.
func TestOpenOn(t *testing.T) {
	base := newMaps()
	o := options("")
	o.CheckpointBytes = 1000
	s, err := store.OpenOn(journal.OSDir(t.TempDir()), base, o)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	longest := int64(0)
	for n := range uint64(50) {
		commit(t, s, n+1)
		longest = max(longest, s.Stats().Backlog)
	}
	if longest < 4*o.CheckpointBytes || longest > 6*o.CheckpointBytes {
		t.Errorf("the log was up to %d bytes long", longest)
	}
	r := load(t, s)
	if want := fmt.Sprint(numberedRecords(50).Books); r.Commits != 50 || fmt.Sprint(r.Books) != want {
		t.Errorf("%+v", r)
	}
	o.Site = "eu"
	if _, err := store.OpenOn(journal.OSDir(t.TempDir()), base, o); !errors.Is(err, store.ErrForeign) {
		t.Errorf("another site opens it: %v", err)
	}
	if want := []core.SiteID{"as", "eu", "us"}; !reflect.DeepEqual(s.Members().Sites, want) {
		t.Errorf("members %v", s.Members())
	}
}

// maps is a base in memory.
type maps struct {
	buckets map[journal.Bucket]map[string][]byte
	through *journal.Number
}

func newMaps() *maps { return &maps{buckets: make(map[journal.Bucket]map[string][]byte)} }

func (m *maps) Through() (journal.Number, bool, error) {
	if m.through == nil {
		return 0, false, nil
	}
	return *m.through, true, nil
}

func (m *maps) Apply(ops []journal.Op, through *journal.Number) error {
	for _, op := range ops {
		b := m.buckets[op.Bucket]
		if b == nil {
			b = make(map[string][]byte)
			m.buckets[op.Bucket] = b
		}
		switch op.Kind {
		case journal.Put:
			b[string(op.Key)] = append([]byte(nil), op.Value...)
		case journal.Delete:
			delete(b, string(op.Key))
		case journal.DeleteBelow:
			for k := range b {
				if k < string(op.Key) {
					delete(b, k)
				}
			}
		}
	}
	if through != nil {
		m.through = new(*through)
	}
	return nil
}

func (m *maps) Each(b journal.Bucket, f func(key, value []byte) error) error {
	for _, k := range slices.Sorted(stdmaps.Keys(m.buckets[b])) {
		if err := f([]byte(k), m.buckets[b][k]); err != nil {
			return err
		}
	}
	return nil
}
