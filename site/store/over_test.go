package store_test

import (
	"errors"
	"testing"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
	"google.golang.org/protobuf/proto"
)

// fencedLog is a log over that of a directory, of a node that is not active any more.
type fencedLog struct{ *journal.Journal }

var errFencedLog = errors.New("fenced")

// Append implements journal.Log.
func (fencedLog) Append(*journal.Batch) (journal.Number, error) { return 0, errFencedLog }

// TestVersionOverALog: where other nodes read the log, a version is stored with its commit or
// not at all, and a build that does not speak it refuses the data.
func TestVersionOverALog(t *testing.T) {
	o := options(t.TempDir())
	o.Versions = versions.Of(1)
	closed(t, open(t, o))
	o.Versions = versions.Of(2)
	o.Over = func(local *journal.Journal) (journal.Log, error) { return fencedLog{local}, nil }
	s := open(t, o)
	r := full()
	r.Version = 2
	if err := s.Commit(r); !errors.Is(err, errFencedLog) {
		t.Fatal(err)
	}
	_ = s.Close()
	o.Over = func(local *journal.Journal) (journal.Log, error) { return local, nil }
	s = open(t, o)
	if v := load(t, s).Version; v != 1 {
		t.Errorf("version %d after a commit of version 2 that failed", v)
	}
	if err := s.Commit(&stored.Records{Version: 2}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	o.Versions = versions.Of(1)
	if s, err := store.Open(o); err == nil {
		closed(t, s)
		t.Error("a build of version 1 opens data of version 2")
	}
}

// TestOldBuildOverALog: a build refuses a version that it learns from the log alone.
func TestOldBuildOverALog(t *testing.T) {
	o := options(t.TempDir())
	o.Versions = versions.Of(1)
	closed(t, open(t, o))
	o.Versions = versions.Of(2)
	o.Over = func(local *journal.Journal) (journal.Log, error) { return local, nil }
	s := open(t, o)
	var raise journal.Batch
	if err := s.Commit(&stored.Records{Version: 2}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	identity, err := proto.Marshal(identityIn(t, o.Dir))
	if err != nil {
		t.Fatal(err)
	}
	raise.Put(1, []byte("identity"), identity)

	older := options(t.TempDir())
	older.Versions = versions.Of(1)
	closed(t, open(t, older))
	older.Over = func(local *journal.Journal) (journal.Log, error) {
		if err := local.Commit(&raise); err != nil {
			return nil, err
		}
		for st := local.Stats(); st.Through < st.Number; st = local.Stats() {
			if _, err := local.Step(); err != nil {
				return nil, err
			}
		}
		return local, nil
	}
	if s, err := store.Open(older); err == nil {
		closed(t, s)
		t.Error("a build of version 1 opens a log of version 2")
	}
}
