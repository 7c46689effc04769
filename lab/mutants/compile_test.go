package mutants_test

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/mutants"
	"github.com/samya-db/samya/lab/mutants/schemata"
)

// mostRefused is how many bugs may change more than bodies of functions. Each takes a
// build of its own.
const mostRefused = 20

// TestBugsCompile applies every bug and checks the packages that it changes as the
// compiler's front does. Bugs that fit in a common program are checked together. Imported
// packages come compiled; changed packages are not compiled, which would take minutes.
func TestBugsCompile(t *testing.T) {
	race.OneGoroutine(t)
	if testing.Short() {
		t.Skip("checks dozens of packages")
	}
	c := newChecker(compiled(t))
	// Some packages have another name than their path tells: the unchanged file uses them.
	unnamed := make(map[string][]string)
	before := func(file string) []string {
		if _, known := unnamed[file]; !known {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			if unnamed[file], err = unusedImports(string(text)); err != nil {
				t.Fatal(err)
			}
		}
		return unnamed[file]
	}
	var versions []schemata.Version
	for _, b := range catalogue(t) {
		changed, err := b.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for file, text := range changed {
			unused, err := unusedImports(text)
			if err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
			for _, name := range unused {
				if !slices.Contains(before(file), name) {
					t.Errorf("%s: %s imports %s and does not use it", b.Name, file, name)
				}
			}
		}
		versions = append(versions, schemata.Version{Name: b.Name, Files: changed})
	}
	woven, err := schemata.Weave(func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, name))
		return string(text), err
	}, versions)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(woven.Refused); n > mostRefused {
		t.Errorf("%d bugs need a build of their own, want %d at most: %v", n, mostRefused, woven.Refused)
	}
	check := func(name string, changed map[string]string) {
		dirs := make(map[string]bool)
		for file := range changed {
			dirs[path.Dir(file)] = true
		}
		for dir := range dirs {
			if err := c.check(dir, changed); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	check("together", woven.Files)
	for _, v := range versions {
		if woven.Refused[v.Name] != nil {
			check(v.Name, v.Files)
		}
	}
	if err := c.check("avantan", map[string]string{"avantan/decide.go": "package avantan\n\nimport \"math\"\n"}); err == nil {
		t.Error("a package is fine that lacks most of a file, and imports what it does not use")
	}
	if unused, err := unusedImports("package p\n\nimport (\n\t\"a/b\"\n\tc \"d\"\n\t\"e/f\"\n)\n\nvar x = f.X\n"); err != nil || !slices.Equal(unused, []string{"b", "c"}) {
		t.Errorf("unused imports are %q, %v", unused, err)
	}
}

// unusedImports returns the names of packages that a file imports and does not name.
func unusedImports(text string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{"_": true}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	var unused []string
	for _, spec := range f.Imports {
		if name := schemata.ImportName(spec); !used[name] {
			unused = append(unused, name)
		}
	}
	return unused, nil
}

// compiled returns the files of exports of every package of the module and of its
// imports, by import path.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}",
		"./avantan/...", "./redistribute/...", "./predict/...", "./kvpart/...", "./site/...",
		"./appmgr/...", "./client/...", "./devcluster/...", "./cmd/...", "./doctor/...", "./internal/...", "./lab/...")
	cmd.Dir, cmd.Env = root, mutants.Environ(root)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[name] = file
		}
	}
	return files
}

// checker checks types. Imported packages, and files without a bug, are read once for
// all checks.
type checker struct {
	set    *token.FileSet
	config types.Config
	parsed map[string]*ast.File
}

// newChecker returns a checker of packages with imports from exports.
func newChecker(exports map[string]string) *checker {
	set := token.NewFileSet()
	return &checker{
		set:    set,
		parsed: make(map[string]*ast.File),
		config: types.Config{
			Importer: importer.ForCompiler(set, "gc", func(name string) (io.ReadCloser, error) {
				return os.Open(exports[name])
			}),
			Sizes: types.SizesFor("gc", runtime.GOARCH),
		},
	}
}

// check parses the package of a folder, with some files changed or added, and checks its
// types. Its error tells everything that is wrong.
func (c *checker) check(dir string, changed map[string]string) error {
	p, err := build.ImportDir(filepath.Join(root, dir), 0)
	if err != nil {
		return err
	}
	var files []*ast.File
	for name, text := range changed {
		if path.Dir(name) != dir {
			continue
		}
		f, err := parser.ParseFile(c.set, name, text, 0)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	for _, name := range p.GoFiles {
		name = path.Join(dir, name)
		if _, mutated := changed[name]; mutated {
			continue
		}
		if c.parsed[name] == nil {
			f, err := parser.ParseFile(c.set, filepath.Join(root, name), nil, 0)
			if err != nil {
				return err
			}
			c.parsed[name] = f
		}
		files = append(files, c.parsed[name])
	}
	var wrong []error
	c.config.Error = func(err error) { wrong = append(wrong, err) }
	_, err = c.config.Check(path.Join("github.com/samya-db/samya", dir), c.set, files, nil)
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	return err
}
