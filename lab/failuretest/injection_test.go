package failuretest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

// injection is a fault that strace injects into a system call of a site.
type injection struct {
	// call is pwrite64 or fdatasync, on the log and the database; fsync, on their
	// directory; or renameat or unlinkat, on names in the directory.
	call string
	// when selects calls of each thread, as strace counts them from its start: "3", or
	// "3+" for all from the third on.
	when string
	// errno is the error that the calls return; empty: the site is killed as it
	// begins the call, which is then not carried out.
	errno string
}

// does spells the effect for strace.
func (in injection) does() string {
	if in.errno != "" {
		return "error=" + in.errno
	}
	return "signal=KILL"
}

func (in injection) String() string { return in.call + ":" + in.does() + ":when=" + in.when }

// dataCallNames are the calls by which a site changes its data.
const dataCallNames = "pwrite64,fdatasync,fsync,renameat,renameat2,unlinkat"

// under puts a site's next start under strace. The site stays the child of the
// test (-D). Its calls on its data are shown in the file named output.
func (in injection) under(p *proc.Process, output string) {
	p.Under = []string{
		"strace", "-D", "-f", "-q", "-y", "-s", "0", "-o", output,
		"-e", "trace=" + dataCallNames, "-e", "inject=" + in.String(), "--",
	}
}

// traceOf waits until strace reports the end of a process, and returns the whole trace.
func traceOf(t *testing.T, output string, pid int) string {
	t.Helper()
	end := regexp.MustCompile(fmt.Sprintf(`(?m)^%d .*\+\+\+ (killed|exited) .*\n`, pid))
	for began := time.Now(); ; {
		text, err := os.ReadFile(output)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if end.Match(text) {
			return string(text)
		}
		if time.Since(began) > patience {
			t.Fatalf("strace does not tell of the end of process %d:\n%s", pid, text)
		}
		if err := wan.Wait(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// point is the place in a commit or checkpoint at which a site ended.
type point uint8

// A commit writes to the log and syncs it. A checkpoint makes a segment and names it,
// writes pages of the database, syncs them, writes a meta page and syncs it, once or
// more. It renames and removes segments, and syncs the directory after changes of names.
const (
	logWrite point = iota
	logSync
	pageWrite
	firstSync
	metaWrite
	secondSync
	naming
	namesSync
	points
)

func (p point) String() string {
	return [...]string{
		"log write", "log sync", "data page", "first sync", "meta page", "second sync", "names", "names' sync",
	}[p]
}

// errNoPoint: the trace does not end in the call to be hit.
var errNoPoint = errors.New("the last such call on the data is not the one that was hit")

// pointOf returns the point of the call at which a site was killed; this call has no end.
// Calls of other threads may be cut off as well.
func pointOf(calls []systemCall, in injection) (point, error) {
	for i, c := range slices.Backward(calls) {
		if c.name == in.call && c.ended == 0 {
			return partOf(calls[:i+1]), nil
		}
	}
	return 0, errNoPoint
}

// partOf returns the point of the last call.
func partOf(calls []systemCall) point {
	last := calls[len(calls)-1]
	meta := func(c systemCall) bool { return c.name == "pwrite64" && c.offset < metaEnd }
	switch {
	case last.name == "fsync":
		return namesSync
	case last.name != "pwrite64" && last.name != "fdatasync":
		return naming
	case last.isLog() && last.name == "pwrite64":
		return logWrite
	case last.isLog():
		return logSync
	case meta(last):
		return metaWrite
	case last.name == "pwrite64":
		return pageWrite
	}
	base := only(calls, (*systemCall).isBase)
	if len(base) > 1 && meta(base[len(base)-2]) {
		return secondSync
	}
	return firstSync
}

func TestPointOfATrace(t *testing.T) {
	const killed = ` <unfinished ...>`
	cut := func(line string) string { return line[:strings.LastIndex(line, ")")] + killed }
	tests := []struct {
		name  string
		lines []string
		call  string
		want  point
		fails bool
	}{
		{"a write", []string{traceWrite, cut(traceWrite)}, "pwrite64", logWrite, false},
		{"a sync", []string{traceWrite, cut(traceSync)}, "fdatasync", logSync, false},
		{"an end without a return", []string{traceWrite, traceSyncA, traceSyncGone}, "fdatasync", logSync, false},
		{"a page", []string{tracePage, cut(tracePage)}, "pwrite64", pageWrite, false},
		{"the pages' sync", []string{tracePage, cut(tracePageSync)}, "fdatasync", firstSync, false},
		{"the first sync of a start", []string{cut(tracePageSync)}, "fdatasync", firstSync, false},
		{"the meta page", []string{tracePage, tracePageSync, cut(traceMeta)}, "pwrite64", metaWrite, false},
		{"the meta page's sync", []string{tracePage, tracePageSync, traceMeta, cut(tracePageSync)}, "fdatasync", secondSync, false},
		{"the same, with a commit between", []string{
			tracePage, tracePageSync, traceMeta, strings.Replace(traceWrite, "7", "9", 1), cut(tracePageSync),
		}, "fdatasync", secondSync, false},
		{"another thread is cut off as well", []string{
			tracePage, cut(tracePageSync), strings.Replace(cut(traceWrite), "7", "9", 1),
		}, "fdatasync", firstSync, false},
		{"a rename", []string{traceWrite, cut(traceRename)}, "renameat", naming, false},
		{"a removal", []string{cut(traceUnlink)}, "unlinkat", naming, false},
		{"the directory", []string{traceRename, cut(traceDir)}, "fsync", namesSync, false},
		{"killed elsewhere", []string{traceWrite, traceSync}, "fdatasync", 0, true},
		{"another call", []string{traceWrite, cut(traceSync)}, "pwrite64", 0, true},
		{"nothing", []string{tracePing}, "pwrite64", 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls, err := parseTrace(strings.Join(test.lines, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := pointOf(onData(calls), injection{call: test.call, when: "1"})
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("%v, %v; want %v, fails %t", got, err, test.want, test.fails)
			}
		})
	}
}

// endedBy checks that a process ended as the injection makes it.
func (in injection) endedBy(err error) error {
	switch {
	case in.errno == "" && killedBy(err) != syscall.SIGKILL:
		return fmt.Errorf("the site was ended by %w, want SIGKILL", err)
	case in.errno != "" && exitStatus(err) <= 0:
		return fmt.Errorf("the site ends with status %d, want one above 0", exitStatus(err))
	}
	return nil
}
