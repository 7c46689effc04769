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

	"github.com/samya-db/samya/internal/proc"
)

// TestMain lets this test program play the part of samya: it is samya when it
// is called so.
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
	var code []string
	for line := range strings.Lines(strings.ReplaceAll(rest, "\\\n", "")) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			code = append(code, strings.TrimSpace(command))
		}
	}
	return code
}

// missing leaves a test out where a program it needs is not there, but fails it
// in CI, where nobody would see that.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// TestReadmeCommands runs the commands of the README's "Use it", in their
// order, against a cluster of real processes. None of them may fail.
func TestReadmeCommands(t *testing.T) {
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
	run := func(line string) (string, error) {
		// Whatever HTTP refuses must fail here.
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
	ran := map[string]int{}
	for _, line := range readme(t, "Use it") {
		program, _, _ := strings.Cut(line, " ")
		if program != "curl" && program != "bin/samya" {
			continue
		}
		ran[program]++
		if out, err := run(line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if ran["curl"] < 8 || ran["bin/samya"] < 6 {
		t.Errorf("ran %v; the test does not see the README's commands", ran)
	}
	out, err := run(`curl $SAMYA_ADDR/v1/entities/acme/seats:acquire -d '{"tokens": 9000, "wait": "0s"}'`)
	if err == nil {
		t.Fatalf("granted more than the limit: %s", out)
	}
	sameProblem(t, out)
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

// sameProblem holds the README's problem document against one that was
// answered: the same members, and texts but for its numbers.
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
