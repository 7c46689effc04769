package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// scratch is removed when the tests have run.
var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "samya-release-test-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // nothing is left to fail
	os.Exit(code)
}

// linux is the platform of the tests' builds: Linux on this machine's architecture.
var linux = platform{"linux", runtime.GOARCH}

// once builds the files to download, from the source as it stands here, for the tests
// that look at them.
var once = sync.OnceValues(func() (*release, error) {
	src, err := readSource(context.Background(), "../..")
	if err != nil {
		return nil, err
	}
	src.exported = true // it is built where it is
	r := &release{source: src, platforms: []platform{linux}, out: filepath.Join(scratch, "dist"), log: io.Discard}
	return r, r.build(context.Background())
})

func built(t *testing.T) *release {
	t.Helper()
	r, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// unpacked returns the archive's files by their names without the directory.
func unpacked(t *testing.T, r *release) map[string][]byte {
	t.Helper()
	base := "samya_" + r.source.version + "_" + linux.String()
	f, err := os.Open(filepath.Join(r.out, base+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(r.source.time) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of %v, %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
		name, ok := strings.CutPrefix(h.Name, base+"/")
		if !ok {
			t.Errorf("%s lies beside %s", h.Name, base)
		}
		if all[name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// binary writes the archive's program into a file.
func binary(t *testing.T, r *release) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "samya")
	if err := os.WriteFile(path, unpacked(t, r)["samya"], 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchive(t *testing.T) {
	r := built(t)
	files := unpacked(t, r)
	for _, name := range []string{
		"samya", "LICENSE", "NOTICES.txt", "README.md", "CHANGELOG.md", "configuration.md",
		"completions/samya.bash", "completions/_samya", "completions/samya.fish", "man/man1/samya.1", "man/man1/samya-site.1",
	} {
		if len(files[name]) == 0 {
			t.Errorf("no %s, or an empty one", name)
		}
	}
	path := binary(t, r)
	if runtime.GOOS == "linux" {
		out, err := exec.CommandContext(t.Context(), path, "version").Output()
		if want := "samya " + r.source.version + " " + r.source.revision[:12] + ", " + runtime.Version() + "\n"; err != nil || string(out) != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
	// The program is static, and tells nothing of the place of its build.
	b, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }() // it was only read
	if libs, err := b.ImportedLibraries(); err != nil || len(libs) > 0 || b.Section(".interp") != nil {
		t.Errorf("it wants libraries: %q, %v", libs, err)
	}
	if home, err := os.UserHomeDir(); err != nil || bytes.Contains(files["samya"], []byte(r.source.dir)) ||
		len(home) > 3 && bytes.Contains(files["samya"], []byte(home+"/")) {
		t.Errorf("it names directories of this machine (%v)", err)
	}
}

func TestChecksums(t *testing.T) {
	r := built(t)
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, sums))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "\n"); got != len(entries)-1 || got < 4 {
		t.Errorf("%d checksums of %d files", got, len(entries)-1)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sums)
	cmd.Dir = r.out
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSBOM: the SBOM lists the linked modules, and no others.
func TestSBOM(t *testing.T) {
	r := built(t)
	f, err := os.Open(filepath.Join(r.out, "samya_"+r.source.version+"_"+linux.String()+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	self := bom.Metadata.Component
	if self.Name != "github.com/samya-db/samya" || self.Version != r.source.version || bom.Metadata.Timestamp != r.source.time.Format(time.RFC3339) {
		t.Errorf("of %s %s at %s", self.Name, self.Version, bom.Metadata.Timestamp)
	}
	var listed []string
	for _, c := range *bom.Components {
		listed = append(listed, c.Name+"@"+c.Version)
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || c.Name != "std" && len((*c.Hashes)[0].Value) != 64 {
			t.Errorf("%+v", c)
		}
	}
	info, err := buildinfo.ReadFile(binary(t, r))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std@" + info.GoVersion}
	for _, m := range info.Deps {
		want = append(want, m.Path+"@"+m.Version)
	}
	if !slices.Equal(listed, want) || len(want) < 20 {
		t.Errorf("lists %q, want %q", listed, want)
	}
	// rapid is in the go.mod, and for tests alone.
	if slices.ContainsFunc(listed, func(m string) bool { return strings.HasPrefix(m, "pgregory.net/rapid@") }) {
		t.Error("lists what is not linked")
	}
	notices := string(unpacked(t, r)["NOTICES.txt"])
	for _, m := range info.Deps {
		if !strings.Contains(notices, m.Path+" "+m.Version+": ") {
			t.Errorf("no terms of %s", m.Path)
		}
	}
}

func TestNoTermsNoRelease(t *testing.T) {
	r := built(t)
	l, err := r.licences(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary(t, r))
	if err != nil {
		t.Fatal(err)
	}
	l.dirs[info.Deps[0].Path+"@"+info.Deps[0].Version] = t.TempDir()
	if _, err := l.notices(binary(t, r)); err == nil || !strings.Contains(err.Error(), info.Deps[0].Path) {
		t.Errorf("a module without terms: %v", err)
	}
	delete(l.dirs, info.Deps[0].Path+"@"+info.Deps[0].Version)
	if _, err := l.notices(binary(t, r)); err == nil {
		t.Error("a module that is nowhere is given away")
	}
}

// TestArchivesAreOfTheirFiles: neither the order of the files nor their metadata in the
// file system makes a difference.
func TestArchivesAreOfTheirFiles(t *testing.T) {
	one := func(old time.Time, mode os.FileMode, turn bool) []byte {
		path := filepath.Join(t.TempDir(), "x")
		if err := errors.Join(os.WriteFile(path, []byte("x"), mode), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
		files := []file{{name: "b/c/x", path: path, mode: 0o644}, {name: "a", text: "a", mode: 0o600}, {name: "b/d/", mode: 0o700, uid: 7}}
		if turn {
			slices.Reverse(files)
		}
		var b bytes.Buffer
		if err := writeTar(&b, withDirectories(files), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	a, b := one(time.Unix(1, 0), 0o600, false), one(time.Unix(2e9, 0), 0o644, true)
	if !bytes.Equal(a, b) {
		t.Error("they differ")
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(a)); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
	}
	if want := []string{"a", "b/", "b/c/", "b/c/x", "b/d/"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestCompare(t *testing.T) {
	dirs := func(a, b map[string]string) (x, y string) {
		x, y = t.TempDir(), t.TempDir()
		for dir, files := range map[string]map[string]string{x: a, y: b} {
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		return x, y
	}
	same := map[string]string{"a": "1", "b": "22"}
	if n, err := compare(dirs(same, same)); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	for name, other := range map[string]map[string]string{
		"a byte":        {"a": "1", "b": "23"},
		"one longer":    {"a": "1", "b": "222"},
		"one file more": {"a": "1", "b": "22", "c": ""},
		"another name":  {"a": "1", "c": "22"},
		"nothing":       {},
	} {
		if _, err := compare(dirs(same, other)); !errors.Is(err, errDiffers) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := compare(dirs(nil, nil)); err == nil {
		t.Error("nothing is the same as nothing, which shows nothing")
	}
}

func TestSource(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		env := []string{
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2001-02-03T04:05:06Z", "GIT_AUTHOR_DATE=1999-02-03T04:05:06Z",
		}
		if _, err := output(t.Context(), dir, env, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	read := func() source {
		t.Helper()
		s, err := readSource(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	git("init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "f")
	git("commit", "-q", "-m", "one")
	s := read()
	if want := "v0.0.0-20010203040506-" + s.revision[:12]; s.version != want || s.modified {
		t.Errorf("%+v, want version %s", s, want)
	}
	git("tag", "v1.2.0")
	git("tag", "v1.10.0")
	git("tag", "other")
	if s = read(); s.version != "v1.10.0" {
		t.Errorf("version %s", s.version)
	}
	if err := os.WriteFile(filepath.Join(dir, "g"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s = read(); s.version != "v1.10.0-modified" || !s.modified {
		t.Errorf("%+v", s)
	}
	if err := run(t.Context(), []string{"-source", dir, "-out", filepath.Join(dir, "out"), "build"}, io.Discard); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("a release of what is not committed: %v", err)
	}
	if s.committed().version != "v1.10.0" || s.committed().modified {
		t.Errorf("%+v", s.committed())
	}
	// The export has the files of the commit, not of the work tree.
	to := filepath.Join(t.TempDir(), "x", "y")
	if got, err := s.export(t.Context(), to); err != nil || got.dir != to || !got.exported {
		t.Fatalf("%+v, %v", got, err)
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 1 || entries[0].Name() != "f" {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := readSource(t.Context(), "/"); err == nil {
		t.Error("the root is a repository")
	}
}

// TestWhatIsNotOursStays: a directory with something else in it is left alone.
func TestWhatIsNotOursStays(t *testing.T) {
	out := t.TempDir()
	mine := filepath.Join(out, "samya_v1_image.tar")
	other := filepath.Join(out, "thesis.txt")
	if err := errors.Join(os.WriteFile(mine, nil, 0o600), os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := &release{source: source{exported: true}, out: out, log: io.Discard}
	if _, err := r.begin(t.Context()); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("begun: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	work, err := r.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll(work) // it is empty
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"make"}, {"build", "more"}, {"-platforms", "linux", "build"}, {"-platforms", "", "build"}, {"-what"}} {
		if err := run(t.Context(), append([]string{"-source", "../..", "-modified", "-out", t.TempDir()}, args...), io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
