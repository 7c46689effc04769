package schemata

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// parse parses an original file.
func parse(name, text string) (*file, error) {
	f := &file{text: text, set: token.NewFileSet(), calls: make(map[*ast.FuncDecl][]string)}
	tree, err := parser.ParseFile(f.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	f.tree, f.declared, f.names = tree, functions(tree), make(map[string]string)
	for _, spec := range tree.Imports {
		name := ImportName(spec)
		f.names[name] = spec.Path.Value
	}
	return f, nil
}

// functions returns the functions of a file, by their receivers and names.
func functions(tree *ast.File) map[string]*ast.FuncDecl {
	all := make(map[string]*ast.FuncDecl)
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			all[key(fn)] = fn
		}
	}
	return all
}

// key names a function in its package.
func key(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	return printed(token.NewFileSet(), receiver) + "." + fn.Name.Name
}

// compare returns what another text changes in a file. It fails if the text changes more
// than bodies of functions and imports.
func (f *file) compare(text string) (change, error) {
	if strings.HasSuffix(f.set.File(f.tree.Pos()).Name(), "_test.go") {
		return change{}, errors.New("changes a test")
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return change{}, err
	}
	if f.tree.Name.Name != tree.Name.Name || !slices.EqualFunc(declarations(f.tree), declarations(tree), func(a, b *ast.GenDecl) bool {
		return source(f.set, f.text, a) == source(set, text, b) || printed(f.set, a) == printed(set, b)
	}) {
		return change{}, errors.New("changes a type, a constant or a variable")
	}
	c := change{to: f}
	for _, spec := range tree.Imports {
		name := ImportName(spec)
		switch have := f.names[name]; have {
		case "":
			c.imports = append(c.imports, spec)
		case spec.Path.Value:
		default:
			return change{}, fmt.Errorf("imports another package %s", name)
		}
	}
	after := functions(tree)
	for _, name := range slices.Sorted(maps.Keys(f.declared)) {
		before, now := f.declared[name], after[name]
		delete(after, name)
		if now != nil && (source(f.set, f.text, before) == source(set, text, now) || printed(f.set, before) == printed(set, now)) {
			continue
		}
		if err := fits(f.set, before, set, now); err != nil {
			return change{}, fmt.Errorf("%s: %w", name, err)
		}
		if now == nil {
			continue
		}
		whole, name := source(set, text, now), set.Position(now.Name.Pos()).Offset-set.Position(now.Pos()).Offset
		c.functions = append(c.functions, function{original: before, before: whole[:name], after: whole[name+len(now.Name.Name):]})
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		return change{}, fmt.Errorf("adds %s", name)
	}
	return c, nil
}

// fits returns an error if a function cannot call its changed version.
func fits(before *token.FileSet, original *ast.FuncDecl, after *token.FileSet, changed *ast.FuncDecl) error {
	switch {
	case changed == nil && original.Recv != nil:
		return errors.New("a method is removed")
	case changed == nil:
		return nil // Without a caller, an unused function.
	case original.Body == nil || changed.Body == nil:
		return errors.New("a function without a body")
	case original.Name.Name == "init" && original.Recv == nil || original.Name.Name == "_":
		return errors.New("a function that nobody can call")
	case shape(before, original) != shape(after, changed):
		return errors.New("the parameters or results change")
	case recovers(changed.Body):
		return errors.New("recovers from a panic for its caller")
	}
	return nil
}

// declarations returns all of a file but imports and functions.
func declarations(tree *ast.File) []*ast.GenDecl {
	var all []*ast.GenDecl
	for _, d := range tree.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok != token.IMPORT {
			all = append(all, g)
		}
	}
	return all
}

// source returns the text of a node in a file.
func source(set *token.FileSet, text string, node ast.Node) string {
	return text[set.Position(node.Pos()).Offset:set.Position(node.End()).Offset]
}

// shape returns the types of a function's receiver, parameters and results.
func shape(set *token.FileSet, fn *ast.FuncDecl) string {
	var b strings.Builder
	for _, list := range []*ast.FieldList{fn.Recv, fn.Type.TypeParams, fn.Type.Params, fn.Type.Results} {
		b.WriteString("(")
		for _, field := range listed(list) {
			b.WriteString(strings.Repeat(printed(set, field.Type)+",", max(1, len(field.Names))))
		}
		b.WriteString(")")
	}
	return b.String()
}

func listed(list *ast.FieldList) []*ast.Field {
	if list == nil {
		return nil
	}
	return list.List
}

// recovers reports whether a function calls recover itself. Called by another function
// than the panicking function's deferred call, recover returns nil.
func recovers(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "recover" {
				found = true
			}
		}
		return !found
	})
	return found
}

// printed returns the text of a node without comments.
func printed(set *token.FileSet, node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, node); err != nil {
		panic(err) // A buffer takes all, and the parser made the node.
	}
	return b.String()
}
