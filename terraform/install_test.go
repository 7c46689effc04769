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
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/terraform/tofutest"
)

// packed is an archive with files, each a name and a content, as `make release` makes them.
func packed(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for f := range slices.Chunk(files, 2) {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o755, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
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

// TestInstallEtcd runs the script that fetches a release of etcd, which has another program
// and a tool.
func TestInstallEtcd(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	dir := t.TempDir()
	to := filepath.Join(dir, "bin", "etcd")
	r := render(t, c, withNodes(map[string]any{"paths": map[string]string{"etcd": to, "library": filepath.Join(dir, "lib"), "etc": dir}}))
	text := r.EtcdFiles[etcdName][filepath.Join(dir, "lib", "install")].Content
	archive := packed(t, "etcd-v3/README.md", "x", "etcd-v3/etcd", "#!/bin/sh\necho etcd Version: 3\n", "etcd-v3/etcdctl", "tool")
	sum := sha256.Sum256([]byte(archive))
	text = strings.ReplaceAll(text, strings.Repeat("1", 64), hex.EncodeToString(sum[:]))
	release := filepath.Join(dir, "release")
	curl := "#!/bin/sh\nwhile [ \"$1\" != --output ]; do shift; done\ncp " + release + " \"$2\"\n"
	for path, content := range map[string]string{release: archive, filepath.Join(dir, "curl"): curl} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, want := range map[string]string{to: "#!/bin/sh\necho etcd Version: 3\n", filepath.Join(dir, "bin", "etcdctl"): "tool"} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Fatalf("%s: %v, %v", path, info, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", path, got, err)
		}
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
