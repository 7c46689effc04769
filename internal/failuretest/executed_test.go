package failuretest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/proc"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/store"
)

// holdSync is for how long a site that is to be killed is held in each sync of
// its database, once that is done.
const holdSync = 400 * time.Millisecond

// heldAtSyncs traces what a site does to its database and holds it in each sync. What a
// commit executed is durable then, and none of its answers can have left.
func heldAtSyncs(t *testing.T, p *proc.Process) *tracer {
	t.Helper()
	return attach(t, p.PID(), "-y", "-s", "0", "-e", "trace=pwrite64,fdatasync",
		fmt.Sprintf("--inject=fdatasync:delay_exit=%d", holdSync.Microseconds()))
}

// commitCalls are the calls on the database in a trace that goes on: without the
// line being written, and without the ends of calls that it has not seen begin.
func commitCalls(t *testing.T, text string) []systemCall {
	t.Helper()
	resumed := regexp.MustCompile(`^(\d+) +<\.\.\. \w+ resumed>`)
	began := make(map[string]bool)
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		thread, _, _ := strings.Cut(line, " ")
		if m := resumed.FindStringSubmatch(line); m != nil && !began[thread] {
			continue
		}
		began[thread] = strings.HasSuffix(line, "<unfinished ...>\n")
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil
	}
	calls, err := parseTrace(strings.Join(lines, ""))
	if err != nil {
		t.Fatal(err)
	}
	return onDatabase(calls)
}

// inSync reports whether the last call is the sync of a commit's pages, or that
// of its meta page, and is done: the site is held in it.
func inSync(calls []systemCall, at point) bool {
	return len(calls) > 0 && calls[len(calls)-1].ended != 0 && partOf(calls) == at
}

// lastBlock is the highest sequence of the request blocks on a disk, with the
// records of the blocks behind another sequence.
func lastBlock(t *testing.T, file []byte, site string, behind uint64) (last uint64, records []core.RequestRecord, err error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.db"), file, 0o600); err != nil {
		return 0, nil, err
	}
	s, err := store.Open(store.Options{Dir: dir, Cluster: "failuretest", Site: core.SiteID(site)})
	if err != nil {
		return 0, nil, err
	}
	state, err := s.Load()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, b := range state.Blocks {
		last = max(last, b.Sequence)
		if b.Sequence > behind {
			records = append(records, b.Records...)
		}
	}
	return last, records, err
}

// killExecuted kills a site in a commit that is durable and of which no answer
// has left: strace holds it in the sync of the meta page. It returns what the
// commit says was executed. The site is down afterwards.
func killExecuted(t *testing.T, p *proc.Process, atKill func()) []core.RequestRecord {
	t.Helper()
	tr := heldAtSyncs(t, p)
	path := filepath.Join(p.Data, "site.db")
	var before []byte
	for began := time.Now(); ; {
		calls := commitCalls(t, tr.text())
		switch {
		case inSync(calls, firstSync):
			// The meta page still is that of the commit before.
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if inSync(commitCalls(t, tr.text()), firstSync) {
				before = file
			}
		case before != nil && inSync(calls, secondSync):
			atKill()
			kill(t, p)
			tr.wait()
			return executedBehind(t, p, before)
		}
		if time.Since(began) > patience {
			t.Fatalf("%s commits nothing within %s", p.Name, patience)
		}
		if err := wan.Wait(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// executedBehind reads the disk of a dead site: what moved tokens in the blocks
// that are not in an earlier state of its database. Nothing is told of a state
// that was copied while it changed.
func executedBehind(t *testing.T, p *proc.Process, before []byte) []core.RequestRecord {
	t.Helper()
	last, _, err := lastBlock(t, before, p.Name, 0)
	if err != nil {
		t.Logf("%s: the copy of its database is of no use: %v", p.Name, err)
		return nil
	}
	file, err := os.ReadFile(filepath.Join(p.Data, "site.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, records, err := lastBlock(t, file, p.Name, last)
	if err != nil {
		t.Fatal(err)
	}
	var ran []core.RequestRecord
	for _, r := range records {
		if r.State == core.Ran {
			ran = append(ran, r)
		}
	}
	return ran
}
