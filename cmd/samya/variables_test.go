package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/flagtest"
	"github.com/samya-db/samya/internal/settings"
)

// TestVariables: testdata/variables.txt lists the variables of all commands; run the test
// with -update and look. A present name has a single meaning, and one kind of process, in
// all commands. A former name has the meaning of the present name, if that is another's.
func TestVariables(t *testing.T) {
	all := new(program).variables()
	var b strings.Builder
	for i := 0; i < len(all); {
		v := all[i]
		var commands []string
		state := "former"
		for ; i < len(all) && all[i].name == v.name; i++ {
			commands = append(commands, all[i].command)
			if !all[i].former {
				state = "present"
			}
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", v.name, state, v.flag.Usage, strings.Join(commands, ", "))
	}
	const file = "testdata/variables.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || b.String() != string(text) {
		t.Errorf("%s is stale (%v): go test ./cmd/samya -run TestVariables -update", file, err)
	}
	for _, fault := range variableFaults(all) {
		t.Error(fault)
	}
}

// variableFaults returns the clashes of variables.
func variableFaults(all []variable) []string {
	var faults []string
	first := make(map[string]variable)
	kindOf := func(v variable) string {
		if v.command == kindSite || v.command == kindAppmgr {
			return v.command
		}
		return kindClient
	}
	for _, v := range all {
		other, again := first[v.name]
		switch {
		case !again:
			first[v.name] = v
		case v.flag.Name != other.flag.Name || flagtest.Meaning(v.flag.Usage) != flagtest.Meaning(other.flag.Usage) || v.flag.Value.Type() != other.flag.Value.Type():
			faults = append(faults, fmt.Sprintf("%s of %s: %q; of %s: %q", v.name, other.command, other.flag.Usage, v.command, v.flag.Usage))
		case kindOf(v) != kindOf(other) && !v.former && !other.former && v.flag.Name != settings.ConfigFlag:
			faults = append(faults, fmt.Sprintf("%s is read by %s and by %s", v.name, other.command, v.command))
		}
	}
	return faults
}

// TestVariableFaults: the test of clashes sees one of each kind.
func TestVariableFaults(t *testing.T) {
	flags := flagsOf(new(program).commandOf(kindSite))
	name, data := flags.Lookup("name"), flags.Lookup("data")
	for want, all := range map[string][]variable{
		"":                                      {{"SAMYA_A", "acquire", name, false}, {"SAMYA_A", "release", name, false}, {"SAMYA_B", "site", name, true}, {"SAMYA_B", "acquire", name, false}},
		"SAMYA_A is read by site and by appmgr": {{"SAMYA_A", "site", name, false}, {"SAMYA_A", "appmgr", name, false}},
		fmt.Sprintf("SAMYA_A of acquire: %q; of release: %q", name.Usage, data.Usage): {{"SAMYA_A", "acquire", name, false}, {"SAMYA_A", "release", data, false}},
	} {
		if got := strings.Join(variableFaults(all), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestScopedVariables: a flag with another meaning in each command has a variable of each
// command, and no variable of all.
func TestScopedVariables(t *testing.T) {
	used := make(map[string]bool)
	for _, f := range flagtest.Of(new(program).root()) {
		_, isScoped := scoped[f.Name]
		used[f.Name] = used[f.Name] || isScoped
	}
	for flag := range scoped {
		if !used[flag] {
			t.Errorf("no command has --%s", flag)
		}
	}
	s := newShell(t)
	s.env["SAMYA_ENTITY"] = "acme/seats"
	code, _, stderr := s.run("lease list")
	const want = "environment variable SAMYA_ENTITY: --entity has another meaning in each command; the name for samya lease list is SAMYA_LEASE_LIST_ENTITY"
	if code != exitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit status %d, %q, want %q", code, stderr, want)
	}
	s.env["SAMYA_LEASE_LIST_ENTITY"] = "acme/seats"
	if code, _, stderr := s.run("lease list"); code != exitOK {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// TestVariableOfAnother: a variable of a command does not stop another command, which had
// a flag of that name in an earlier release.
func TestVariableOfAnother(t *testing.T) {
	s := newShell(t)
	s.env["SAMYA_WAIT"] = "1s"
	s.run("entity create acme --limit 5")
	if code, _, stderr := s.run("entity set-limit acme 7"); code != exitOK {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if code, _, stderr := s.run("entity set-limit acme 7 --wait"); code != exitUsage || !strings.Contains(stderr, "wait-applied") {
		t.Errorf("the former flag: exit status %d: %s", code, stderr)
	}
}

// TestServerVariables: a server reads its own variables, and former names with a warning.
// It warns of variables that nobody reads.
func TestServerVariables(t *testing.T) {
	env := map[string]string{
		"SAMYA_SITE_NAME": "us", "SAMYA_SITE_MEMBERS": "us,eu", "SAMYA_APPMGR_NAME": "gate", "SAMYA_DATA": t.TempDir(),
		"SAMYA_SITE_REQUEST_RETENTOIN": "secret", "SAMYA_LIMIT": "7", "SAMYA_PORT": "tcp://10.0.0.1:7001",
		"SAMYA_SITE_SERVICE_HOST": "10.0.0.1", "SAMYA_WAIT": "1s", "OTHER": "x",
	}
	var stderr bytes.Buffer
	p := &program{
		stdin: strings.NewReader(""), stdout: &stderr, stderr: &stderr, judging: true,
		lookupEnv: func(key string) (string, bool) { v, ok := env[key]; return v, ok },
		environ: func() []string {
			var all []string
			for k, v := range env {
				all = append(all, k+"="+v)
			}
			return all
		},
	}
	if code := p.run(t.Context(), []string{"site"}); code != exitOK {
		t.Fatalf("exit status %d: %s", code, &stderr)
	}
	for _, want := range []string{
		"environment variable SAMYA_DATA: a former name, read for the last time in this release; the name is SAMYA_SITE_DATA",
		"environment variable SAMYA_SITE_REQUEST_RETENTOIN: no command of samya reads it; did you mean SAMYA_SITE_REQUEST_RETENTION?",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no warning %q:\n%s", want, &stderr)
		}
	}
	if got := strings.Count(stderr.String(), slog.LevelWarn.String()); got != 2 || strings.Contains(stderr.String(), "secret") {
		t.Errorf("%d warnings, want 2, without a value:\n%s", got, &stderr)
	}
	if got := p.settled.Origin("name"); got != "SAMYA_SITE_NAME" {
		t.Errorf("the name is from %s", got)
	}
	for i := range 3 * unknownMost {
		env[fmt.Sprintf("SAMYA_ZZZ_%d", i)] = "x"
	}
	warnings := p.unknownVariables(kindAppmgr)
	if len(warnings) != unknownMost+1 || !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, fmt.Sprint(2*unknownMost+1)) }) {
		t.Errorf("%d warnings: %q", len(warnings), warnings)
	}
}
