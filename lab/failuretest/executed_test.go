package failuretest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core/stored"
)

// holdSync is the time for which strace holds a site at the end of each sync of its data.
const holdSync = 400 * time.Millisecond

// heldAtSyncs traces a site's calls on its data and holds the site in each sync. During
// the hold the commit is durable, and none of its answers can have left.
func heldAtSyncs(t *testing.T, p *proc.Process) *tracer {
	t.Helper()
	return attach(t, p.PID(), "-y", "-s", "0", "-e", "trace=pwrite64,fdatasync",
		fmt.Sprintf("--inject=fdatasync:delay_exit=%d", holdSync.Microseconds()))
}

// dataCalls returns the calls on the data in a trace that goes on. It leaves out the line
// being written, and the ends of calls that began before the trace.
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

// syncsOf counts the ended syncs of the log. held reports whether the last call on the
// log is such a sync: strace holds the site in it.
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

// choosing bounds the time for which killExecuted passes over commits.
const choosing = 5 * time.Second

// killExecuted kills a site in a commit that is durable, before any of its answers has
// left: strace holds the site in the sync of the log. It returns the requests that the
// commit executed. It chooses the first commit that suits, or after the time choosing any
// commit. A read of the data may take longer than the hold, so the site is stopped
// meanwhile. The site is down afterwards.
func killExecuted(t *testing.T, p *proc.Process, suits func([]stored.Request) bool) []stored.Request {
	t.Helper()
	tr := heldAtSyncs(t, p)
	// number counts the syncs until the last read of the data, block is the last request
	// block of that read.
	var number int
	var block uint64
	began := time.Now()
	for before := began; ; {
		polled := time.Now()
		if syncs, held := syncsOf(dataCalls(t, tr.text())); held && syncs != number {
			signal(t, p, syscall.SIGSTOP)
			// The site was not held in this sync before the last poll.
			inTime := time.Since(before) < holdSync
			calls := dataCalls(t, tr.text())
			again, held := syncsOf(calls)
			inTime = inTime && held && again == syncs
			last, ran := executedBehind(t, copyData(t, p), p.Name, block)
			if inTime && number > 0 && syncs == number+1 && (suits(ran) || time.Since(began) > choosing) {
				kill(t, p)
				tr.wait()
				return ran
			}
			if number, block = again, last; !held || !quiet(calls) {
				number = 0
			}
			signal(t, p, syscall.SIGCONT)
		}
		if time.Since(began) > patience {
			t.Fatalf("%s makes no commit to be killed in within %s", p.Name, patience)
		}
		before = polled
		if err := wan.Wait(t.Context(), 5*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func signal(t *testing.T, p *proc.Process, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// executedBehind reads a copy of a site's data. It returns the number of the last
// request block, and the requests that moved tokens in the blocks behind block.
func executedBehind(t *testing.T, dir, site string, block uint64) (last uint64, ran []stored.Request) {
	t.Helper()
	state, err := loaded(t, dir, site)
	if err != nil {
		t.Fatal(err)
	}
	last, records := blocksOf(t, &state, block)
	for _, r := range records {
		if r.State == stored.Ran {
			ran = append(ran, r)
		}
	}
	return last, ran
}
