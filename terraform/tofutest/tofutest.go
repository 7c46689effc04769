// Package tofutest runs OpenTofu on copies of the configurations below terraform/, for
// tests; it refuses to let OpenTofu fetch anything.
package tofutest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/terraform/tfschema"
)

// Root returns the directory of this module.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module github.com/samya-db/samya\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("the tests do not run inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// Built returns the path of a program that `make bin/NAME` builds. If the program is
// missing, the test is skipped, and fails in CI. Under the race detector the test is
// skipped as well: all that it tests runs in other processes, without the detector.
func Built(tb testing.TB, name string) string {
	tb.Helper()
	race.OtherProcesses(tb)
	path := filepath.Join(Root(tb), "bin", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("%v; `make bin/%s` builds it", err, name)
		}
		tb.Skipf("there is no bin/%s; `make bin/%s` builds it", name, name)
	}
	return path
}

// Samya builds the program samya of this work tree into a temporary directory of the
// test and returns its path.
func Samya(tb testing.TB) string {
	tb.Helper()
	path, err := buildtest.Samya(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Config is a copy of the configurations, in a temporary directory of the test.
type Config struct {
	tb   testing.TB
	bin  string
	home string
	// Dir is the directory in which OpenTofu runs.
	Dir string
	// Vars are variables by name: strings, or values to encode as JSON.
	Vars map[string]any
}

// Copy copies terraform/ and returns the configuration in dir, a folder below
// terraform/. Providers come from the directory mirror; an empty string means no
// providers.
func Copy(tb testing.TB, dir, mirror string) *Config {
	tb.Helper()
	c := &Config{tb: tb, bin: Built(tb, "tofu"), home: tb.TempDir(), Vars: make(map[string]any)}
	c.Dir = filepath.Join(c.home, "terraform", dir)
	from := filepath.Join(Root(tb), "terraform")
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(c.home, "terraform", rel)
		switch {
		case e.IsDir() && (e.Name() == ".terraform" || e.Name() == "samya-local"):
			return filepath.SkipDir
		case e.IsDir():
			return os.MkdirAll(to, 0o700)
		case strings.HasSuffix(e.Name(), ".tfstate") || strings.HasSuffix(e.Name(), "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		tb.Fatal(err)
	}
	if mirror == "" {
		mirror = filepath.Join(c.home, "none")
	}
	// The mirror serves all providers, so that OpenTofu asks no registry.
	rc := "provider_installation {\n  filesystem_mirror {\n    path = " + quote(mirror) + "\n  }\n}\ndisable_checkpoint = true\n"
	if err := os.WriteFile(filepath.Join(c.home, "tofurc"), []byte(rc), 0o600); err != nil {
		tb.Fatal(err)
	}
	return c
}

func quote(s string) string {
	b, _ := json.Marshal(s) //nolint:errchkjson // a string always has a form
	return string(b)
}

// Run runs OpenTofu and returns its output.
func (c *Config) Run(args ...string) (string, error) {
	c.tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(c.tb.Context()), c.bin, args...)
	cmd.Dir = c.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TMPDIR=" + os.TempDir(),
		"TF_CLI_CONFIG_FILE=" + filepath.Join(c.home, "tofurc"), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TF_CLI_ARGS=-no-color",
		"GOGC=400", // a quarter less processor time, for more memory
	}
	for name, v := range c.Vars {
		s, plain := v.(string)
		if !plain {
			b, err := json.Marshal(v)
			if err != nil {
				c.tb.Fatal(err)
			}
			s = string(b)
		}
		cmd.Env = append(cmd.Env, "TF_VAR_"+name+"="+s)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Must runs OpenTofu, fails the test on an error, and returns the output.
func (c *Config) Must(args ...string) string {
	c.tb.Helper()
	out, err := c.Run(args...)
	if err != nil {
		// The plan before the error says little.
		if at := strings.Index(out, "\nError: "); at >= 0 {
			out = out[at:]
		}
		c.tb.Fatalf("tofu %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Output decodes the outputs of the configuration into out.
func (c *Config) Output(out any) {
	c.tb.Helper()
	var all map[string]struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(c.Must("output", "-json")), &all); err != nil {
		c.tb.Fatal(err)
	}
	values := make(map[string]json.RawMessage, len(all))
	for name, v := range all {
		values[name] = v.Value
	}
	b, err := json.Marshal(values)
	if err != nil {
		c.tb.Fatal(err)
	}
	if err := json.Unmarshal(b, out); err != nil {
		c.tb.Fatal(err)
	}
}

// Planned runs a plan and reports whether it changes anything.
func (c *Config) Planned() bool {
	c.tb.Helper()
	out, err := c.Run("plan", "-detailed-exitcode")
	if err == nil {
		return false
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
		return true
	}
	c.tb.Fatalf("tofu plan: %v\n%s", err, out)
	return false
}

// Changes plans, and returns what the plan does to resources: by address the actions, such
// as "create" or "delete,create". Resources that stay as they are, and reads, are left out.
func (c *Config) Changes(args ...string) map[string]string {
	c.tb.Helper()
	plan := filepath.Join(c.tb.TempDir(), "plan")
	c.Must(append([]string{"plan", "-out=" + plan}, args...)...)
	var shown struct {
		Changes []struct {
			Address string `json:"address"`
			Change  struct {
				Actions []string `json:"actions"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(c.Must("show", "-json", plan)), &shown); err != nil {
		c.tb.Fatal(err)
	}
	changes := make(map[string]string)
	for _, r := range shown.Changes {
		if did := strings.Join(r.Change.Actions, ","); did != "no-op" && did != "read" {
			changes[r.Address] = did
		}
	}
	return changes
}

// Mirror makes a mirror for [Copy], with stand-ins for the providers that have a schema
// in terraform/schemas, and returns its directory.
func Mirror(tb testing.TB) string {
	tb.Helper()
	standin := Built(tb, "standin")
	program, err := os.ReadFile(standin)
	if err != nil {
		tb.Fatal(err)
	}
	mirror := tb.TempDir()
	for _, name := range []string{"google", "aws"} {
		schema := filepath.Join(Root(tb), "terraform", "schemas", name+".json")
		if _, err := os.Stat(schema); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p, err := tfschema.Read(schema)
		if err != nil {
			tb.Fatal(err)
		}
		dir := filepath.Join(mirror, "registry.opentofu.org", "hashicorp", name, p.Version, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		text, err := os.ReadFile(schema)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "schema.json"), text, 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "terraform-provider-"+name+"_v"+p.Version), program, 0o700); err != nil { //nolint:gosec // it is to be run
			tb.Fatal(err)
		}
	}
	return mirror
}
