package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// Measure is a number about the code.
type Measure struct {
	Name  string
	Now   int
	Bound int      // the most allowed; noBound for any number
	Where []string `json:",omitempty"` // the places that count, the worst first
}

const noBound = -1

// The bounds.
const (
	maxCircle   = 3  // files of the core that call each other in a circle
	maxMethods  = 60 // methods of a type
	maxExported = 60 // exported names of a package
)

func (m Measure) holds() bool { return m.Bound == noBound || m.Now <= m.Bound }

// measure takes all measures.
func (m *module) measure() ([]Measure, error) {
	direct, required, err := m.required()
	if err != nil {
		return nil, err
	}
	pages, words, err := m.pages()
	if err != nil {
		return nil, err
	}
	exported, unused, err := m.exported()
	if err != nil {
		return nil, err
	}
	return []Measure{
		m.importsUp(), m.fileCircle("site/core"), m.methods(), exported, unused, m.comments(), pages, words, m.lines(), direct, required,
	}, nil
}

// importsUp counts imports that run up between top-level folders, in the order of
// folders with the fewest such imports.
func (m *module) importsUp() Measure {
	folders := make(graph)
	imports := make(map[string][]string) // by "from to" of their folders
	for _, p := range m.sorted() {
		from := m.folder(p.PkgPath)
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			to := m.folder(path)
			if m.packages[path] == nil || from == to {
				continue
			}
			folders.add(from, to, 1)
			imports[from+" "+to] = append(imports[from+" "+to], m.short(p.PkgPath)+" imports "+m.short(path))
		}
	}
	order, n := folders.order()
	var where []string
	for i, from := range order {
		for _, to := range order[:i] {
			where = append(where, imports[from+" "+to]...)
		}
	}
	return Measure{Name: "imports that run up between top-level folders", Now: n, Bound: 0, Where: where}
}

// fileCircle looks for files below a folder that call each other in a circle.
func (m *module) fileCircle(below string) Measure {
	declared := make(map[string]string) // the file of a function, by its full name
	var core []*packages.Package
	for _, p := range m.sorted() {
		if short := m.short(p.PkgPath); short != below && !strings.HasPrefix(short, below+"/") {
			continue
		}
		core = append(core, p)
		m.written(p, func(f *ast.File, path string) {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					if fn, ok := p.TypesInfo.Defs[d.Name].(*types.Func); ok {
						declared[fn.FullName()] = path
					}
				}
			}
		})
	}
	calls := make(graph)
	for _, p := range core {
		m.written(p, func(f *ast.File, path string) {
			ast.Inspect(f, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				if fn, ok := p.TypesInfo.Uses[id].(*types.Func); ok {
					if at := declared[fn.Origin().FullName()]; at != "" {
						calls.add(path, at, 1)
					}
				}
				return true
			})
		})
	}
	out := Measure{Name: "files of " + below + " in one circle of calls", Now: 1, Bound: maxCircle}
	for i, c := range calls.circles() {
		if i == 0 {
			out.Now = len(c)
		}
		out.Where = append(out.Where, fmt.Sprintf("%d files: %s", len(c), strings.Join(c, " ")))
	}
	return out
}

// ranked is a name with a number.
type ranked struct {
	name string
	n    int
}

// worst makes a measure of the biggest number.
func worst(name string, bound int, all []ranked) Measure {
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	out := Measure{Name: name, Bound: bound}
	for _, r := range all {
		out.Now = max(out.Now, r.n)
		if r.n > bound || len(out.Where) == 0 {
			out.Where = append(out.Where, fmt.Sprintf("%s: %d", r.name, r.n))
		}
	}
	return out
}

// methods counts the methods of each type of the product, without generated files.
func (m *module) methods() Measure {
	counts := make(map[string]int)
	for _, p := range m.product() {
		m.written(p, func(f *ast.File, _ string) {
			for _, d := range f.Decls {
				d, ok := d.(*ast.FuncDecl)
				if !ok || d.Recv == nil {
					continue
				}
				if name := receiver(d.Recv.List[0].Type); name != "" {
					counts[m.short(p.PkgPath)+"."+name]++
				}
			}
		})
	}
	var all []ranked
	for name, n := range counts {
		all = append(all, ranked{name, n})
	}
	return worst("methods of the biggest type", maxMethods, all)
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// required counts the modules that go.mod lists.
func (m *module) required() (direct, all Measure, err error) {
	b, err := os.ReadFile(m.goMod)
	if err != nil {
		return direct, all, fmt.Errorf("count the modules: %w", err)
	}
	f, err := modfile.Parse(m.goMod, b, nil)
	if err != nil {
		return direct, all, fmt.Errorf("count the modules: %w", err)
	}
	direct = Measure{Name: "modules that go.mod requires directly", Bound: noBound}
	all = Measure{Name: "modules that go.mod lists", Now: len(f.Require), Bound: noBound}
	for _, r := range f.Require {
		if !r.Indirect {
			direct.Now++
		}
	}
	return direct, all, nil
}

// lines counts the lines of the product, without generated files.
func (m *module) lines() Measure {
	n := 0
	for _, p := range m.product() {
		m.written(p, func(f *ast.File, _ string) { n += p.Fset.Position(f.FileEnd).Line })
	}
	return Measure{Name: "lines of the product, without tests and generated files", Now: n, Bound: noBound}
}
