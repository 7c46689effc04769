package failuretest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/proc"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core"
)

// holdSync is for how long a site that is to be killed is held in each sync of
// its data, once that is done.
const holdSync = 400 * time.Millisecond

// heldAtSyncs traces what a site does to its data and holds it in each sync. What a
// commit executed is durable then, and none of its answers can have left.
func heldAtSyncs(t *testing.T, p *proc.Process) *tracer {
	t.Helper()
	return attach(t, p.PID(), "-y", "-s", "0", "-e", "trace=pwrite64,fdatasync",
		fmt.Sprintf("--inject=fdatasync:delay_exit=%d", holdSync.Microseconds()))
}

// dataCalls are the calls on the data in a trace that goes on: without the line
// being written, and without the ends of calls that it has not seen begin.
func dataCalls(t *testing.T, text string) []systemCall {
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
	return onData(calls)
}

// syncsOf counts the syncs of the log that have ended. held tells that the last
// call on it is one: the site is held in it.
func syncsOf(calls []systemCall) (syncs int, held bool) {
	for _, c := range onLog(calls) {
		if held = c.name == "fdatasync" && c.ended != 0; held {
			syncs++
		}
	}
	return syncs, held
}

// quiet reports whether no call of a trace is under way.
func quiet(calls []systemCall) bool {
	return !slices.ContainsFunc(calls, func(c systemCall) bool { return c.ended == 0 })
}

// killExecuted kills a site in a commit that is durable and of which no answer
// has left: strace holds it in the sync of the log. It returns what the commit
// says was executed. The site is down afterwards.
func killExecuted(t *testing.T, p *proc.Process, atKill func()) []core.RequestRecord {
	t.Helper()
	tr := heldAtSyncs(t, p)
	// before is a copy of the data as of the sync of that number.
	before, number := "", 0
	for began := time.Now(); ; {
		calls := dataCalls(t, tr.text())
		switch syncs, held := syncsOf(calls); {
		case !held:
		case before != "" && syncs == number+1:
			atKill()
			kill(t, p)
			tr.wait()
			return executedBehind(t, p, before)
		case before == "" || syncs != number:
			before, number = copyData(t, p), syncs
			if again := dataCalls(t, tr.text()); len(again) != len(calls) || !quiet(calls) {
				before = ""
			}
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
// that are not in an earlier copy of its data.
func executedBehind(t *testing.T, p *proc.Process, before string) []core.RequestRecord {
	t.Helper()
	earlier, err := loaded(t, before, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := blocksOf(&earlier, 0)
	state, err := loaded(t, copyData(t, p), p.Name)
	if err != nil {
		t.Fatal(err)
	}
	_, records := blocksOf(&state, last)
	var ran []core.RequestRecord
	for _, r := range records {
		if r.State == core.Ran {
			ran = append(ran, r)
		}
	}
	return ran
}
