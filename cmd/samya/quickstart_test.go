package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// step is the commands of a page, with the output that follows them, if it is shown.
var step = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?")

// TestQuickstart runs every command of docs/quickstart.md in order, in a single shell and
// on a fresh clone of this work tree. The outputs must match the page. The test has a
// network of its own, as the ports are the defaults.
func TestQuickstart(t *testing.T) {
	race.OtherProcesses(t)
	for _, name := range []string{"unshare", "ip", "git", "make", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, "needs "+name)
		}
	}
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := step.FindAllStringSubmatch(string(page), -1)
	if fences := strings.Count(string(page), "```sh\n"); len(steps) != fences || fences < 12 {
		t.Fatalf("%d steps of %d; the test does not see the page's commands", len(steps), fences)
	}
	dir := t.TempDir()
	// The address that the page names leads to the work tree as it is.
	origin := filepath.Join(dir, "origin")
	snapshot(t, origin)
	const end = "==== the end of a step ===="
	script := "set -euo pipefail\nip link set lo up\n" +
		// Whatever fails, no process stays.
		`trap 'status=$?; if [ -e "$0"/samya/samya-local ]; then "$0"/samya/bin/samya local down --dir "$0"/samya/samya-local; fi; exit $status' EXIT` +
		"\ncd \"$0\"\n"
	for _, s := range steps {
		script += s[1] + "echo '" + end + "'\n"
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--net", "bash", "-c", script, home)
	// With the flags of the Makefile, `go run` finds all packages compiled.
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+origin+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/samya-db/samya",
		"MAKEFLAGS=", "GOFLAGS=-trimpath -gcflags=all=-dwarf=false -ldflags=-w", "GOWORK=")
	raw, err := cmd.CombinedOutput()
	printed := strings.Split(string(raw), end+"\n")
	if err != nil || len(printed) != len(steps)+1 {
		t.Fatalf("%v at step %d of %d\n%s", err, len(printed), len(steps), raw)
	}
	for i, s := range steps {
		if s[2] != "" && !shown(s[2]).MatchString(printed[i]) {
			t.Errorf("%s\nprints\n%s\nthe page says\n%s", s[1], printed[i], s[2])
		}
	}
	left, err := os.ReadDir(filepath.Join(home, "samya"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if _, err := os.Stat(filepath.Join(origin, e.Name())); err != nil && e.Name() != "bin" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// snapshot makes a repository of this work tree's files, committed or not, except for
// ignored files.
func snapshot(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `set -euo pipefail
mkdir "$1"
cd "$2"
git ls-files -z --cached --others --exclude-standard --deduplicate | while IFS= read -rd '' f; do
  if [ -e "$f" ]; then printf '%s\0' "$f"; fi
done | tar -c --null -T - | tar -x -C "$1"
cd "$1"
git init -q -b main
git add -A
git -c user.name=test -c user.email=test@localhost commit -qm snapshot`, "bash", dir, root)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// shown returns a pattern for the outputs that a page shows as text. "…" stands for
// anything within a line, and for any lines where it stands alone. The number of blanks
// does not count.
func shown(text string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = strings.ReplaceAll(regexp.QuoteMeta(w), "…", `[^\n]*?`)
		}
		fmt.Fprintf(&b, `[ ]*%s[ ]*\n`, strings.Join(words, `[ ]+`))
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// TestShown: shown matches no output that differs from the page.
func TestShown(t *testing.T) {
	const page = "…\nacquired 3 of a; … left\nA  B\n{…\"status\":403}\n"
	for output, want := range map[string]bool{
		"acquired 3 of a; 7 left\nA   B\n{\"status\":403}\n":                     true,
		"warm up\n\nacquired 3 of a; 7 left\nA B\n{\"a\":1,\"status\":403}\n":    true,
		"acquired 4 of a; 7 left\nA B\n{\"status\":403}\n":                       false,
		"acquired 3 of a; 7\nleft\nA B\n{\"status\":403}\n":                      false,
		"acquired 3 of a; 7 left\nAB\n{\"status\":403}\n":                        false,
		"acquired 3 of a; 7 left\nA B\n{\"status\":4034}\n":                      false,
		"acquired 3 of a; 7 left\nA B\n{\"status\":403}\nand an error follows\n": false,
	} {
		if got := shown(page).MatchString(output); got != want {
			t.Errorf("%q: matches: %t", output, got)
		}
	}
}

// TestQuickstartProgram: the lines of Go on the page are lines of the program that its
// command runs.
func TestQuickstartProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../examples/seats/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if strings.Count(code, "\n") < 4 {
		t.Fatal("the test does not see the page's program")
	}
	for line := range strings.Lines(code) {
		if !strings.Contains(string(program), "\t"+line) {
			t.Errorf("not in the program: %s", line)
		}
	}
}
