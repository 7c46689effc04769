package failuretest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/proc"
	"github.com/samya-db/samya/internal/wan"
)

// injection is what strace does to a system call of a site.
type injection struct {
	// call is pwrite64 or fdatasync.
	call string
	// when says which calls of each thread, as strace counts them from its
	// start: "3", or "3+" for all from the third on.
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

// under puts a site's next start under strace. The site stays the child of the
// test (-D). Its calls on the database are shown in the file named output.
func (in injection) under(p *proc.Process, output string) {
	p.Under = []string{
		"strace", "-D", "-f", "-q", "-y", "-s", "0", "-o", output,
		"-e", "trace=pwrite64,fdatasync", "-e", "inject=" + in.String(), "--",
	}
}

// traceOf waits until strace has written of the end of a process, and returns
// all that it wrote.
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

// point is where in a commit a site was when it ended.
type point uint8

// A commit writes its pages, syncs them, writes a meta page and syncs that.
const (
	pageWrite point = iota
	firstSync
	metaWrite
	secondSync
	points
)

func (p point) String() string {
	return [...]string{"data page", "first sync", "meta page", "second sync"}[p]
}

// errNoPoint: the trace does not end in the call that was to be hit.
var errNoPoint = errors.New("the last call on the database is not the one that was hit")

// pointOf tells which part of a commit the last call of a trace is: the one
// that a site was killed at, which has no end.
func pointOf(calls []systemCall, in injection) (point, error) {
	if len(calls) == 0 {
		return 0, errNoPoint
	}
	last := calls[len(calls)-1]
	if last.name != in.call || last.ended != 0 {
		return 0, fmt.Errorf("%w: %s, ended %t", errNoPoint, last.name, last.ended != 0)
	}
	return partOf(calls), nil
}

// partOf tells which part of a commit the last call is.
func partOf(calls []systemCall) point {
	last := calls[len(calls)-1]
	meta := func(c systemCall) bool { return c.name == "pwrite64" && c.offset < metaEnd }
	switch {
	case meta(last):
		return metaWrite
	case last.name == "pwrite64":
		return pageWrite
	case len(calls) > 1 && meta(calls[len(calls)-2]):
		return secondSync
	default:
		return firstSync
	}
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
		{"a page", []string{tracePage, cut(tracePage)}, "pwrite64", pageWrite, false},
		{"the pages' sync", []string{tracePage, cut(traceSync)}, "fdatasync", firstSync, false},
		{"the first sync of a start", []string{cut(traceSync)}, "fdatasync", firstSync, false},
		{"the meta page", []string{tracePage, traceSync, cut(traceMeta)}, "pwrite64", metaWrite, false},
		{"the meta page's sync", []string{tracePage, traceSync, traceMeta, cut(traceSync)}, "fdatasync", secondSync, false},
		{"an end without a return", []string{tracePage, traceSyncA, traceSyncGone}, "fdatasync", firstSync, false},
		{"the next commit", []string{tracePage, traceSync, traceMeta, traceSync, cut(tracePage)}, "pwrite64", pageWrite, false},
		{"killed elsewhere", []string{tracePage, traceSync}, "fdatasync", 0, true},
		{"another call", []string{tracePage, cut(traceSync)}, "pwrite64", 0, true},
		{"nothing", []string{tracePing}, "pwrite64", 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls, err := parseTrace(strings.Join(test.lines, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := pointOf(onDatabase(calls), injection{call: test.call, when: "1"})
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("%v, %v; want %v, fails %t", got, err, test.want, test.fails)
			}
		})
	}
}

// onDatabase leaves out the calls on anything else.
func onDatabase(calls []systemCall) []systemCall {
	var only []systemCall
	for _, c := range calls {
		if strings.Contains(c.file, "/site.db") {
			only = append(only, c)
		}
	}
	return only
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
