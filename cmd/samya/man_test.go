package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestMan: each command that the help shows has a page with all its flags. The formatter
// of pages finds no fault with any page.
func TestMan(t *testing.T) {
	// The last minute of a month: east of Greenwich the next one has begun.
	local := time.Local
	time.Local = time.FixedZone("east", 9*60*60)
	defer func() { time.Local = local }()
	dir := filepath.Join(t.TempDir(), "man1")
	s := newShell(t)
	s.env["SOURCE_DATE_EPOCH"] = "1701388799"
	s.expect("man "+dir, exitOK, "")
	s.env["SOURCE_DATE_EPOCH"] = "yesterday"
	if code, _, stderr := s.run("man " + dir); code != exitUsage || !strings.Contains(stderr, "SOURCE_DATE_EPOCH") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	pages := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if !cmd.IsAvailableCommand() && cmd.HasParent() {
			return
		}
		page := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		b, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		if !strings.Contains(string(b), `"Nov 2023"`) {
			t.Errorf("%s is of another month than SOURCE_DATE_EPOCH", page)
		}
		text := strings.ReplaceAll(string(b), `\-`, "-")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s tells nothing of --%s", page, f.Name)
			}
		})
		groff, err := exec.LookPath("groff")
		if err != nil {
			return
		}
		if said, err := exec.CommandContext(t.Context(), groff, "-Kutf8", "-man", "-Tutf8", "-z", "-ww", page).CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: %v: %s", page, err, said)
		}
	}
	visit(new(program).root())
	if pages < 20 {
		t.Errorf("%d pages", pages)
	}
}

// TestShellsReadTheirCompletions: the syntax check of each installed shell accepts its
// completions.
func TestShellsReadTheirCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, stderr := newShell(t).run("completion " + shell)
		if code != exitOK || !strings.Contains(script, "samya") {
			t.Errorf("%s: exit status %d, %d bytes, %s", shell, code, len(script), stderr)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "completion")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), program, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, said)
		}
	}
}
