package failuretest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

// copyData copies a site's data directory. The site must be down or stopped: a copy from
// a running site may be a state that a loss of power would never leave.
func copyData(t *testing.T, p *proc.Process) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(p.Data)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// loaded reads the whole content of a copy of a site's data, as the site's next start
// would: also commits in the log and not yet in the database.
func loaded(t *testing.T, dir, site string) (stored.Restored, error) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, Cluster: "failuretest", Site: core.SiteID(site)})
	if err != nil {
		return stored.Restored{}, err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := s.Load()
	if err == nil {
		_, err = r.AllBlocks() // before the store is closed
	}
	return r, err
}

// storedEntity reads the entity's record from the disk of a site that does not run.
func storedEntity(t *testing.T, p *proc.Process) stored.Entity {
	t.Helper()
	state, err := loaded(t, copyData(t, p), p.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range state.Entities {
		if e.Name == entity {
			return e
		}
	}
	return stored.Entity{}
}

// instanceOpen reports whether a site that does not run takes part in an instance that it
// has not applied. The site has then set tokens aside for the instance, or accepted a
// value.
func instanceOpen(t *testing.T, p *proc.Process) bool {
	t.Helper()
	e := storedEntity(t, p)
	for _, slice := range e.Star.Slices {
		if !slice.Committed {
			return true
		}
	}
	return e.Protocol.Pledge != nil || e.Protocol.Accepted != nil
}

// transferOpen reports whether a site that does not run has sent tokens that it
// has not seen acknowledged.
func transferOpen(t *testing.T, p *proc.Process) bool {
	t.Helper()
	e := storedEntity(t, p)
	return e.Transfer.InFlight() > 0
}

// blocksOf returns the highest sequence of the request blocks that a site has stored, and
// the records of the blocks behind another sequence.
func blocksOf(t *testing.T, state *stored.Restored, behind uint64) (last uint64, records []stored.Request) {
	t.Helper()
	blocks, err := state.AllBlocks()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		last = max(last, b.Sequence)
		if b.Sequence > behind {
			records = append(records, b.Records...)
		}
	}
	return last, records
}
