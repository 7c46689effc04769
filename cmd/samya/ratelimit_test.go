package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		{dir + "/a.yaml --descriptor user=x", exitOK, "user=x: 5 a minute, counted by ratelimit/a/user.x/minute"},
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
