package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEnvoyExample: the example's limits are read, its commands have their flags, and so
// have the commands of the pages about it.
func TestEnvoyExample(t *testing.T) {
	var out strings.Builder
	p := &program{stdout: &out, stderr: &out, lookupEnv: func(string) (string, bool) { return "", false }}
	const dir = "../../examples/envoy/"
	code := p.run(t.Context(), []string{"ratelimit", "check", dir + "ratelimit", "--descriptor", "remote_address=1", "--descriptor", "route=export,customer=acme", "--descriptor", "route=model,customer=acme"})
	if code != exitOK || strings.Contains(out.String(), "no limit") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%d, %s", code, out.String())
	}
	root := p.root()
	word := regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)
	checked := 0
	for _, page := range []string{dir + "docker-compose.yml", "../../docs/envoy.md", "../../docs/migrate-ratelimit.md"} {
		for line := range strings.Lines(read(t, page)) {
			for _, flag := range word.FindAllString(line, -1) {
				if strings.Contains(line, "docker load") || strings.Contains(line, "envoy --config-path") {
					continue
				}
				checked++
				known := false
				for _, name := range []string{"site", "appmgr"} {
					cmd, _, err := root.Find([]string{name})
					if err != nil {
						t.Fatal(err)
					}
					known = known || hasFlag(cmd, flag[2:])
				}
				if check, _, err := root.Find([]string{"ratelimit", "check"}); err != nil || !known && !hasFlag(check, flag[2:]) {
					t.Errorf("%s: no command has %s", page, flag)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d flags; the test does not see them", checked)
	}
}

// TestRatelimitCheck: faults are told with their places, and descriptors with their limits.
func TestRatelimitCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":   "domain: a\ndescriptors:\n  - key: user\n    rate_limit: {unit: minute, requests_per_unit: 5}\n  - key: free\n    rate_limit: {unlimited: true}\n",
		"b.yaml":   "domain: b\ndescriptors:\n  - key: user\n    shadow_mode: true\n    quota_mode: true\n    rate_limit: {unit: day, requests_per_unit: 7, name: x, replaces: [{name: y}]}\n",
		"bad.text": "domain: a\ndescriptors:\n  - key: user\n    rate_limits: {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want string // the beginning of a line of the output or of the error
	}{
		{dir, exitOK, dir + ": ok: 3 descriptors in the domains a, b"},
		{dir + "/a.yaml --descriptor user=x", exitOK, "user=x: 5 a minute, counted by ratelimit/a/user/minute-keys/x"},
		{dir + "/a.yaml --descriptor user=x,path=y --descriptor free=1", exitOK, "user=x,path=y: no limit\nfree=1: unlimited"},
		{dir + " --domain b --descriptor user=x", exitOK, "user=x: 7 a day, counted by ratelimit/b/user.x/day, in shadow mode, in quota mode, replaces y"},
		{dir + " --descriptor user=x", exitUsage, "samya: domain: missing, must be one of a, b"},
		{dir + "/a.yaml --descriptor =x", exitUsage, `samya: descriptor: "=x" has an entry without a key`},
		{dir + "/bad.text", exitUsage, "samya: " + dir + "/bad.text:4: descriptors[0].rate_limits: unknown"},
		{dir + "/none", exitUsage, "samya: reading rate limits: stat " + dir + "/none: no such file or directory"},
		{"", exitUsage, "samya: 0 arguments, want FILE|DIR"},
	} {
		var out strings.Builder
		p := &program{stdout: &out, stderr: &out, lookupEnv: func(string) (string, bool) { return "", false }}
		code := p.run(t.Context(), append([]string{"ratelimit", "check"}, strings.Fields(c.args)...))
		if code != c.code || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%s: %d, %s", c.args, code, out.String())
		}
	}
}

// TestRatelimitOfSite: a site tells each fault of its rate limits, and does not start.
func TestRatelimitOfSite(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("domain: a\ndescriptors:\n  - key: user\n    rate_limits: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--ratelimit-config " + bad:           "samya: ratelimit-config: " + bad + ":4: descriptors[0].rate_limits: unknown",
		"--ratelimit-config " + dir + "/none": "samya: ratelimit-config: reading rate limits: stat " + dir + "/none: no such file or directory",
		"--ratelimit-headers all":             "samya: ratelimit-headers: must be one of none, ratelimit, x-ratelimit, envoyproxy",
	} {
		var out strings.Builder
		p := &program{stdout: &out, stderr: &out, lookupEnv: func(string) (string, bool) { return "", false }}
		code := p.run(t.Context(), append([]string{"site", "--name", "us", "--members", "us", "--data", filepath.Join(dir, "data")}, strings.Fields(flags)...))
		if code != exitUsage || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %d, %s", flags, code, out.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("a site was started: %v", err)
	}
}
