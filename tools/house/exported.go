package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/tools/go/packages"
)

// public are the packages that users outside of the repository import.
var public = []string{"client"}

// exported counts the exported names of each package of the product, and finds names
// that no other package needs. A package needs the names in its code and its tests, the
// names in their types, and the values of these types.
func (m *module) exported() (most, unused Measure, err error) {
	used, err := m.usedByTests() // "path.name"
	if err != nil {
		return most, unused, err
	}
	for _, p := range m.packages {
		for _, o := range p.TypesInfo.Uses {
			if o.Pkg() != nil && o.Pkg().Path() != p.PkgPath && o.Parent() == o.Pkg().Scope() {
				used[o.Pkg().Path()+"."+o.Name()] = true
			}
		}
	}
	unused = Measure{Name: "exported names of the product that no package imports", Bound: 0}
	var all []ranked
	for path, p := range m.product() {
		names := exportedOf(p)
		if len(names) == 0 {
			continue
		}
		all = append(all, ranked{m.short(path), len(names)})
		if slices.Contains(public, m.short(path)) {
			continue
		}
		needed := make(map[string]bool)
		for _, o := range names {
			if used[path+"."+o.Name()] {
				need(p.Types, o, needed)
			}
		}
		for _, o := range names {
			if !needed[o.Name()] {
				unused.Where = append(unused.Where, m.short(path)+"."+o.Name())
			}
		}
	}
	slices.Sort(unused.Where)
	unused.Now = len(unused.Where)
	return worst("exported names of the biggest package", maxExported, all), unused, nil
}

// usedByTests returns the names, as "path.name", that tests use of packages in other
// folders. A package's own tests do not count: they reach every name, exported or not. A
// test elsewhere is an importer like code: without the name it would copy a bound, or
// compare the text of an error.
//
// The tests are parsed and not type-checked, which would compile each package again for
// its tests.
func (m *module) usedByTests() (map[string]bool, error) {
	used := make(map[string]bool)
	for _, p := range m.sorted() {
		tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			return nil, fmt.Errorf("find the tests of %s: %w", p.PkgPath, err)
		}
		for _, file := range tests {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("read a test: %w", err)
			}
			m.usesOf(f, p.PkgPath, used)
		}
	}
	return used, nil
}

// usesOf adds the names that a test of the package at path uses of other packages.
func (m *module) usesOf(f *ast.File, path string, used map[string]bool) {
	imports := make(map[string]string) // paths by their name in the file
	for _, i := range f.Imports {
		from, err := strconv.Unquote(i.Path.Value)
		p := m.packages[from]
		if err != nil || p == nil || from == path {
			continue
		}
		name := p.Name
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = from
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				used[imports[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}

// exportedOf returns the exported names of a package, without generated files.
func exportedOf(p *packages.Package) []types.Object {
	generated := make(map[*token.File]bool)
	for _, f := range p.Syntax {
		generated[p.Fset.File(f.Package)] = ast.IsGenerated(f)
	}
	var out []types.Object
	for _, name := range p.Types.Scope().Names() {
		if o := p.Types.Scope().Lookup(name); o.Exported() && !generated[p.Fset.File(o.Pos())] {
			out = append(out, o)
		}
	}
	return out
}

// need marks o, and the exported names of its package in its type. It marks the values of
// a type as well: a caller who is given one must be able to name each.
func need(pkg *types.Package, o types.Object, needed map[string]bool) {
	if o.Pkg() != pkg || !o.Exported() || o.Parent() != pkg.Scope() || needed[o.Name()] {
		return
	}
	needed[o.Name()] = true
	seen := make(map[types.Type]bool)
	if named, ok := o.Type().(*types.Named); ok {
		if _, isType := o.(*types.TypeName); isType {
			for _, name := range pkg.Scope().Names() {
				if v, ok := pkg.Scope().Lookup(name).(*types.Const); ok && types.Identical(v.Type(), named) {
					need(pkg, v, needed)
				}
			}
			for p := range named.TypeParams().TypeParams() {
				walk(p.Constraint(), seen, func(t *types.TypeName) { need(pkg, t, needed) })
			}
			walk(named.Underlying(), seen, func(t *types.TypeName) { need(pkg, t, needed) })
			for method := range named.Methods() {
				if method.Exported() {
					walk(method.Type(), seen, func(t *types.TypeName) { need(pkg, t, needed) })
				}
			}
			return
		}
	}
	walk(o.Type(), seen, func(t *types.TypeName) { need(pkg, t, needed) })
}

// walk calls yield for each named type within the type t.
func walk(t types.Type, seen map[types.Type]bool, yield func(*types.TypeName)) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		yield(t.Obj())
		walk(types.Unalias(t), seen, yield)
	case *types.Named:
		yield(t.Obj())
		for arg := range t.TypeArgs().Types() {
			walk(arg, seen, yield)
		}
	case *types.Pointer:
		walk(t.Elem(), seen, yield)
	case *types.Slice:
		walk(t.Elem(), seen, yield)
	case *types.Array:
		walk(t.Elem(), seen, yield)
	case *types.Chan:
		walk(t.Elem(), seen, yield)
	case *types.Map:
		walk(t.Key(), seen, yield)
		walk(t.Elem(), seen, yield)
	case *types.Signature:
		walk(t.Params(), seen, yield)
		walk(t.Results(), seen, yield)
		for p := range t.TypeParams().TypeParams() {
			walk(p.Constraint(), seen, yield)
		}
	case *types.Tuple:
		for v := range t.Variables() {
			walk(v.Type(), seen, yield)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				walk(f.Type(), seen, yield)
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			walk(method.Type(), seen, yield)
		}
		for e := range t.EmbeddedTypes() {
			walk(e, seen, yield)
		}
	case *types.Union:
		for term := range t.Terms() {
			walk(term.Type(), seen, yield)
		}
	}
}
