// Package synctrace makes a test run itself under strace. In the trace it finds the data
// that a loss of power could take back. Such data are writes to files without a later
// sync, and names in directories that were not synced. Killing a process would show none
// of this, as the system keeps its writes.
package synctrace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	// childDir is the variable that tells the child the watched directory.
	childDir = "SAMYA_SYNCTRACE_DIR"
	mark     = "synctrace: durable\n"
	calls    = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir," +
		"write,writev,pwrite64,pwritev,pwritev2,ftruncate,fallocate,fsync,fdatasync"
)

// Run calls child with a new directory, in a process of its own. Whenever child calls
// durable, all writes and names in the directory must be synced, except for files that
// ignore tells; ignore may be nil. A file must be synced before it gets another name.
// Nothing may be removed from a renamed directory before the new name is durable. Run
// returns how often durable was called. Without strace the test is skipped, unless
// CI=true.
func Run(t *testing.T, ignore func(path string) bool, child func(dir string, durable func())) int {
	t.Helper()
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, func() {
			if _, err := os.Stdout.WriteString(mark); err != nil {
				t.Fatal(err)
			}
		})
		return 0
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "trace")
	if out, err := exec.CommandContext(t.Context(), "strace", "-o", output, "true").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("strace does not work here, and CI=true says that it must: %v %s", err, out)
		}
		t.Skipf("needs strace and the right to trace processes: %v %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-y", "-s", "32", "-o", output, "-e", "trace="+calls, "--",
		self, "-test.run", "^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), childDir+"="+filepath.Join(dir, "watched"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	trace, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	marks, wrong := Judge(string(trace), dir, ignore)
	for _, w := range wrong {
		t.Error(w)
	}
	if marks == 0 {
		t.Error("nothing was said to be durable")
	}
	return marks
}

// judge is the state of a directory according to the trace so far.
type judge struct {
	dir    string
	ignore func(string) bool
	// written are the lines of the last writes to files without a later sync. named are
	// the lines of the unsynced changes of names, by directory and name.
	written map[string]int
	named   map[string]map[string]int
	// moved are the names that came by a rename that was not synced since.
	moved map[string]bool
	// known are the files seen so far.
	known map[string]bool
	marks int
	wrong []string
}

var (
	callLine    = regexp.MustCompile(`^(\d+) +(.*)$`)
	resumedLine = regexp.MustCompile(`^<\.\.\. \w+ resumed>(.*)$`)
	callParts   = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+)`)
	onFile      = regexp.MustCompile(`^\d+<([^>]*)>`)
	quoted      = regexp.MustCompile(`(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"`)
)

// begun is a call that has not ended.
type begun struct {
	text string
	line int
}

// Judge reads a trace of strace -f -y. It returns how often the process called all data
// in dir durable, and the faults it found.
func Judge(trace, dir string, ignore func(path string) bool) (marks int, wrong []string) {
	j := &judge{
		dir: dir, ignore: ignore, written: make(map[string]int), named: make(map[string]map[string]int),
		moved: make(map[string]bool), known: make(map[string]bool),
	}
	open := make(map[string]begun)
	number := 0
	for line := range strings.Lines(trace) {
		number++
		m := callLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		call := begun{m[2], number}
		if r := resumedLine.FindStringSubmatch(m[2]); r != nil {
			call = open[m[1]]
			call.text += r[1]
		} else if text, unfinished := strings.CutSuffix(m[2], " <unfinished ...>"); unfinished {
			open[m[1]] = begun{text, number}
			continue
		}
		if p := callParts.FindStringSubmatch(call.text); p != nil && !strings.HasPrefix(p[3], "-") {
			j.call(p[1], p[2], call.line, number)
		}
	}
	return j.marks, j.wrong
}

// call handles a call that succeeded; it began at line from and ended at line to.
func (j *judge) call(name, args string, from, to int) {
	var paths []string
	for _, q := range quoted.FindAllStringSubmatch(args, -1) {
		if !filepath.IsAbs(q[2]) {
			q[2] = filepath.Join(q[1], q[2])
		}
		paths = append(paths, q[2])
	}
	file := ""
	if m := onFile.FindStringSubmatch(args); m != nil {
		file = m[1]
	}
	switch name {
	case "open", "openat", "creat":
		if len(paths) == 1 && (name == "creat" || strings.Contains(args, "O_CREAT")) && !j.known[paths[0]] {
			j.name(paths[0], to)
		}
	case "mkdir", "mkdirat":
		j.name(paths[0], to)
	case "rename", "renameat", "renameat2":
		j.move(paths[0], paths[1], to)
		j.moved[paths[1]] = true
		delete(j.written, paths[0])
		delete(j.named[filepath.Dir(paths[0])], paths[0])
		delete(j.known, paths[0])
	case "link", "linkat":
		j.move(paths[0], paths[1], to)
	case "unlink", "unlinkat", "rmdir":
		if dir := filepath.Dir(paths[0]); j.moved[dir] {
			j.wrong = append(j.wrong, fmt.Sprintf("line %d: %s is removed, and the name %s of its directory is not synced", to, paths[0], dir))
		}
		delete(j.moved, paths[0])
		delete(j.written, paths[0])
		delete(j.named[filepath.Dir(paths[0])], paths[0])
		delete(j.named, paths[0])
		delete(j.known, paths[0])
	case "fsync", "fdatasync":
		j.synced(file, from)
	default: // writes
		if strings.Contains(args, strings.TrimSpace(mark)) {
			j.durable(to)
		} else if j.watched(file) {
			j.written[file] = to
		}
	}
}

func (j *judge) watched(path string) bool {
	return strings.HasPrefix(path, j.dir+"/") && (j.ignore == nil || !j.ignore(path))
}

// name notes that a file got a name.
func (j *judge) name(path string, line int) {
	j.known[path] = true
	if !j.watched(path) {
		return
	}
	dir := filepath.Dir(path)
	if j.named[dir] == nil {
		j.named[dir] = make(map[string]int)
	}
	j.named[dir][path] = line
}

// move notes that a file got another name: its content has to be synced before.
func (j *judge) move(from, to string, line int) {
	if at, dirty := j.written[from]; dirty {
		j.wrong = append(j.wrong, fmt.Sprintf("line %d: %s gets the name %s before the write of line %d is synced", line, from, to, at))
	}
	j.name(to, line)
}

// synced notes a sync that began at a line: calls that had ended by then are durable.
func (j *judge) synced(file string, from int) {
	if at, dirty := j.written[file]; dirty && at < from {
		delete(j.written, file)
	}
	for path, at := range j.named[file] {
		if at < from {
			delete(j.named[file], path)
			delete(j.moved, path)
		}
	}
}

// durable notes a fault for all data that a loss of power could take back.
func (j *judge) durable(line int) {
	j.marks++
	for file, at := range j.written {
		j.wrong = append(j.wrong, fmt.Sprintf("line %d: the write of line %d to %s is not synced", line, at, file))
	}
	for dir, names := range j.named {
		for path, at := range names {
			j.wrong = append(j.wrong, fmt.Sprintf("line %d: %s has its name since line %d, and %s is not synced", line, path, at, dir))
		}
	}
	// Each fault is told once.
	clear(j.written)
	clear(j.named)
}
