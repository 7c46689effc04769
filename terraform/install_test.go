package terraform_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// packed is an archive with a file, as `make release` makes them.
func packed(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestInstall runs the script that fetches a release, with a curl of the test's own.
func TestInstall(t *testing.T) {
	const samya = "#!/bin/sh\necho samya v1, go1\n"
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	dir := t.TempDir()
	to := filepath.Join(dir, "bin", "samya")
	const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
	r := render(t, c, map[string]any{"paths": map[string]string{"program": to, "library": filepath.Join(dir, "lib"), "etc": dir}})
	text := r.SiteFiles["europe-west2-1"][filepath.Join(dir, "lib", "install")].Content
	if !strings.Contains(text, zeros) {
		t.Fatalf("the script has no checksum:\n%s", text)
	}
	tools := t.TempDir()
	curl := "#!/bin/sh\nwhile [ \"$1\" != --output ]; do shift; done\necho >>\"$FETCHES\"\ncp \"$RELEASE\" \"$2\"\n"
	if err := os.WriteFile(filepath.Join(tools, "curl"), []byte(curl), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	fetches := filepath.Join(tools, "fetches")
	install := func(content, sum string) (string, error) {
		release := filepath.Join(tools, "release")
		if err := os.WriteFile(release, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if sum == "" {
			all := sha256.Sum256([]byte(content))
			sum = hex.EncodeToString(all[:])
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(text, zeros, sum))
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "RELEASE="+release, "FETCHES="+fetches)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	archive := packed(t, "samya_v1_linux_amd64/samya", samya)
	for name, test := range map[string]struct{ content, sum, problem string }{
		"another sum":         {archive, strings.Repeat("1", 64), "does not have the SHA-256"},
		"without the program": {packed(t, "samya_v1/README.md", "x"), "", "without the program"},
		"damaged":             {archive[:len(archive)-9], "", "damaged archive"},
		"another machine":     {"\x7fELFx", "", "for this machine"},
		"another program":     {"#!/bin/sh\necho hello\n", "", "for this machine"},
		"a page of an error":  {"<html>not found</html>", "", "for this machine"},
	} {
		if out, err := install(test.content, test.sum); err == nil || !strings.Contains(out, test.problem) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if _, err := os.Stat(to); !os.IsNotExist(err) {
			t.Fatalf("%s: something is installed: %v", name, err)
		}
	}
	for name, content := range map[string]string{"an archive": archive, "the program alone": samya + "# alone\n"} {
		before := lines(t, fetches)
		for range 2 {
			if out, err := install(content, ""); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
		if got := lines(t, fetches) - before; got != 1 {
			t.Errorf("%s is fetched %d times in two runs, want once", name, got)
		}
		if got, err := os.ReadFile(to); err != nil || !strings.HasPrefix(string(got), samya) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// A program that was changed on the machine is fetched anew.
	if err := os.WriteFile(to, []byte("#!/bin/sh\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if out, err := install(samya, ""); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != samya {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := filepath.Glob(to + ".??????"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func lines(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}
