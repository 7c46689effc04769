package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/devcluster/proc"
)

// TestMain lets this test program play the part of samya when its name is samya.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "samya" {
		main()
	}
	os.Exit(m.Run())
}

// readme returns the commands of a section of the README, by line.
func readme(t *testing.T, section string) []string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("the README has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return commands(rest)
}

// commands returns the indented lines of a text.
func commands(text string) []string {
	var code []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			code = append(code, strings.TrimSpace(command))
		}
	}
	return code
}

// missing skips a test where a program it needs is not there. In CI it fails the test, as
// nobody would see the skip.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// processes starts a cluster of real processes. It returns a function that runs a line
// against the cluster, as a reader of the documents would.
func processes(t *testing.T) func(line string) (string, error) {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		missing(t, "needs curl")
	}
	dir := t.TempDir()
	bin := samyaIn(t, dir)
	cluster, err := proc.Start(t.Context(), proc.Config{
		Bin: bin, Dir: dir, Sites: []string{"eu", "us"}, AppManagers: []string{"us"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	awaitSites(t, cluster.AppManager(0).HTTP, 2)
	return func(line string) (string, error) {
		// curl must fail here on every refusal over HTTP.
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "curl() { "+curl+` -sS --fail-with-body "$@"; }; `+line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SAMYA_ADDR=http://"+cluster.AppManager(0).HTTP)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return stdout.String(), fmt.Errorf("%w: %s", err, stderr.String())
		}
		return stdout.String(), nil
	}
}

// runAll runs the commands among the lines, in their order, and counts them by their
// programs. None of them may fail.
func runAll(t *testing.T, run func(line string) (string, error), lines []string) map[string]int {
	t.Helper()
	ran := map[string]int{}
	for _, line := range lines {
		program, _, _ := strings.Cut(line, " ")
		if program != "curl" && program != "bin/samya" {
			continue
		}
		ran[program]++
		if out, err := run(line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	return ran
}

// TestReadmeCommands runs the commands of the README's "Use it".
func TestReadmeCommands(t *testing.T) {
	run := processes(t)
	if ran := runAll(t, run, readme(t, "Use it")); ran["curl"] < 8 || ran["bin/samya"] < 6 {
		t.Errorf("ran %v; the test does not see the README's commands", ran)
	}
	out, err := run(`curl $SAMYA_ADDR/v1/entities/acme/seats:acquire -d '{"tokens": 6000, "wait": "0s"}'`)
	if err == nil {
		t.Fatalf("granted more than is left: %s", out)
	}
	sameProblem(t, out)
}

// TestHierarchiesCommands runs the commands of docs/hierarchies.md, and compares the
// refusal on the page with a real refusal.
func TestHierarchiesCommands(t *testing.T) {
	b, err := os.ReadFile("../../docs/hierarchies.md")
	if err != nil {
		t.Fatal(err)
	}
	run := processes(t)
	if ran := runAll(t, run, commands(string(b))); ran["curl"] < 3 || ran["bin/samya"] < 12 {
		t.Errorf("ran %v; the test does not see the page's commands", ran)
	}
	var books struct {
		Acquired int64 `json:"acquired"`
	}
	out, err := run(`curl $SAMYA_ADDR/v1/entities/acme`)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &books); err != nil || books.Acquired != 20 {
		t.Errorf("of acme are out, want the 20 of acme/web and below: %v in %s", err, out)
	}
	if out, err := run(`curl -X PATCH $SAMYA_ADDR/v1/entities/acme -d '{"limit": 10}'`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = run(`curl $SAMYA_ADDR/v1/entities/acme/web/prod:acquire -d '{"tokens": 5, "wait": "0s"}'`)
	if err == nil {
		t.Fatalf("granted more than the limit of acme: %s", out)
	}
	for _, want := range []string{`"reason":"OUT_OF_TOKENS"`, `"entity":"acme/web/prod"`, `"lacking":"acme"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// samyaIn puts this program into dir as bin/samya and returns its path.
func samyaIn(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin", "samya")
	if err := os.Mkdir(filepath.Dir(bin), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// sameProblem compares the README's problem document with an answered problem: the same
// members, and the same texts except for numbers.
func sameProblem(t *testing.T, answer string) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	member := regexp.MustCompile(`"([a-z_]+)": ("[^"]*"|[0-9]+)`)
	text := strings.Join(readme(t, "Use it"), "\n")
	_, text, _ = strings.Cut(text, "application/problem+json")
	text, _, _ = strings.Cut(text, "}")
	members := member.FindAllStringSubmatch(text, -1)
	if len(members) < 6 {
		t.Fatalf("%d members in the README's problem document; the test does not see it", len(members))
	}
	for _, m := range members {
		value, ok := got[m[1]]
		if !ok {
			t.Errorf("%s is in the README's problem document and not in %s", m[1], answer)
		}
		if s, isText := value.(string); isText && m[2] != `"`+s+`"` {
			t.Errorf("%s: %s in the README, %q answered", m[1], m[2], s)
		}
	}
}

// TestReadmeFlags: the commands that the README shows and no test runs have
// the flags they are given.
func TestReadmeFlags(t *testing.T) {
	root := new(program).root()
	word := regexp.MustCompile(`--[a-z-]+`)
	checked := 0
	check := func(line string, path ...string) {
		cmd, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range word.FindAllString(line, -1) {
			checked++
			if !hasFlag(cmd, flag[2:]) {
				t.Errorf("%s has no %s, which the README gives it: %s", cmd.CommandPath(), flag, line)
			}
		}
	}
	for _, line := range readme(t, "Run it by hand") {
		switch {
		case strings.HasPrefix(line, "bin/samya site "):
			check(line, "site")
		case strings.HasPrefix(line, "bin/samya appmgr "):
			check(line, "appmgr")
		case strings.HasPrefix(line, "bin/samya --addr"):
			check(line, "sites")
		}
	}
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`DEMO_FLAGS=("[^"]*"|\S+)`).FindAllString(string(b), -1) {
		check(m, "demo")
	}
	if checked < 15 {
		t.Errorf("%d flags; the test does not see the README's commands", checked)
	}
}

func hasFlag(cmd *cobra.Command, name string) bool {
	return cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil
}
