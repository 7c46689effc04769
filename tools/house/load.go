package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// module is a loaded Go module.
type module struct {
	path     string // e.g. github.com/samya-db/samya
	goMod    string // the file go.mod
	packages map[string]*packages.Package
}

// lab is the folder of the laboratory, a module of its own. It holds the workspace of
// both modules.
const lab = "lab"

// load reads and type-checks all packages of the module in dir, and of its laboratory if
// there is one, without their tests.
func load(ctx context.Context, dir string) (*module, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	patterns, env := []string{"./..."}, append(os.Environ(), "GOWORK=off")
	if workspace := filepath.Join(root, lab, "go.work"); exists(workspace) {
		patterns, env = append(patterns, "./"+lab+"/..."), append(env, "GOWORK="+workspace)
	}
	loaded, err := packages.Load(&packages.Config{
		Context: ctx,
		Dir:     root,
		Env:     env,
		// Imports come from the compiler's export data, syntax from source.
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule | packages.NeedExportFile,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load the packages: %w", err)
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("load the packages: none in %s", dir)
	}
	m := &module{packages: make(map[string]*packages.Package)}
	for _, p := range loaded {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		if p.Module != nil && (m.path == "" || len(p.Module.Path) < len(m.path)) {
			m.path, m.goMod = p.Module.Path, p.Module.GoMod
		}
		m.packages[p.PkgPath] = p
	}
	if err != nil {
		return nil, fmt.Errorf("load the packages: %w", err)
	}
	return m, nil
}

// exists reports whether a file exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sorted returns the packages by path.
func (m *module) sorted() []*packages.Package {
	var all []*packages.Package
	for _, path := range slices.Sorted(maps.Keys(m.packages)) {
		all = append(all, m.packages[path])
	}
	return all
}

// short returns a package's path below the module.
func (m *module) short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, m.path), "/")
}

// folder returns the top-level folder of a package, empty for the module's root.
func (m *module) folder(path string) string {
	top, _, _ := strings.Cut(m.short(path), "/")
	return top
}

// product returns the packages that a site, an app manager and a client consist of, by
// path.
func (m *module) product() map[string]*packages.Package {
	in := make(map[string]*packages.Package)
	var add func(path string)
	add = func(path string) {
		p := m.packages[path]
		if p == nil || in[path] != nil {
			return
		}
		in[path] = p
		for imported := range p.Imports {
			add(imported)
		}
	}
	for _, root := range []string{"site", "appmgr", "client"} {
		add(m.path + "/" + root)
	}
	return in
}

// written calls yield for each file of p that is not generated, with its path below the
// module.
func (m *module) written(p *packages.Package, yield func(f *ast.File, path string)) {
	for _, f := range p.Syntax {
		if ast.IsGenerated(f) {
			continue
		}
		yield(f, filepath.Join(m.short(p.PkgPath), filepath.Base(p.Fset.Position(f.Package).Filename)))
	}
}
