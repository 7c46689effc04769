// Package schemata puts many changed versions of a source tree into a single program:
// mutant schemata (Untch, Offutt and Harrold, 1993). Each changed function stands beside
// the original under a name of its own. The original function calls the changed function
// if an environment variable names the version.
//
// The package refuses a version that changes more than bodies of functions, and it runs no
// program. The caller compiles the files, and names the version of a run.
package schemata

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Env is the environment variable that names the version of a run. Without Env, the
// program runs the original code.
const Env = "SAMYA_SEEDED_BUG"

// ErrRefused is matched by the error for a version that does not fit in a common program.
var ErrRefused = errors.New("does not fit in a common program")

// Version is a changed version of a source tree.
type Version struct {
	// Name consists of small letters, digits and dashes, and begins with a letter.
	Name string
	// Files are the texts of the changed files, by their names in the tree.
	Files map[string]string
}

// Woven is the result of Weave.
type Woven struct {
	// Files are the texts of the files with all versions, by their names in the tree.
	// Some files are new.
	Files map[string]string
	// Refused tells why versions are not in Files, by the names of the versions.
	Refused map[string]error
}

// Weave puts versions into common files. The function read returns the original text of a
// file. Weave fails if an original file cannot be read or parsed.
func Weave(read func(name string) (string, error), versions []Version) (Woven, error) {
	w := Woven{Files: make(map[string]string), Refused: make(map[string]error)}
	files := make(map[string]*file)
	for _, v := range versions {
		var changes []change
		for name, text := range v.Files {
			f := files[name]
			if f == nil {
				original, err := read(name)
				if err != nil {
					return Woven{}, fmt.Errorf("read %s: %w", name, err)
				}
				if f, err = parse(name, original); err != nil {
					return Woven{}, err
				}
				files[name] = f
			}
			c, err := f.compare(text)
			if err != nil {
				w.Refused[v.Name] = fmt.Errorf("%w: %s: %w", ErrRefused, name, err)
				break
			}
			changes = append(changes, c)
		}
		if w.Refused[v.Name] != nil {
			continue
		}
		for i := range changes {
			changes[i].to.add(v.Name, &changes[i])
		}
	}
	for name, f := range files {
		if len(f.copies) == 0 {
			continue
		}
		w.Files[name] = f.woven()
		w.Files[path.Join(path.Dir(name), switchFile)] = fmt.Sprintf(switchText, f.tree.Name.Name, Env)
	}
	return w, nil
}

// switchFile declares the variable that names the version, in each changed package. The
// functions of the package refer to the variable, so that it is set before any of them runs.
const (
	switchFile = "seeded_bug.go"
	switchText = `package %s

import seededOS "os"

var seededBug = seededOS.Getenv(%q)
`
)

// Versions lists the versions that a compiler's output names. The lines of each version
// are in a file of the version's name.
func Versions(output string, versions []Version) []string {
	var named []string
	for _, v := range versions {
		if slices.ContainsFunc(strings.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \t\n/:", r) }),
			func(word string) bool { return word == v.Name+lineFile }) {
			named = append(named, v.Name)
		}
	}
	return named
}

// lineFile ends the file names that the compiler gives to the lines of a version.
const lineFile = ".bug"

// change is what a version changes in a file.
type change struct {
	to      *file
	imports []*ast.ImportSpec
	// functions are the changed functions, and their new texts.
	functions []function
}

type function struct {
	original *ast.FuncDecl
	// before and after are the new text around the function's name.
	before, after string
}

// file is an original file, and all additions.
type file struct {
	text string
	set  *token.FileSet
	tree *ast.File
	// declared are the functions by their receivers and names.
	declared map[string]*ast.FuncDecl
	// names are the names of imported packages, with their paths.
	names map[string]string
	// imports and copies are the texts of the additions. calls are the names of the
	// versions that change a function.
	imports, copies []string
	calls           map[*ast.FuncDecl][]string
}

// add adds a version.
func (f *file) add(version string, c *change) {
	line := fmt.Sprintf("//line %s%s:1\n", version, lineFile)
	for _, spec := range c.imports {
		name, as := ImportName(spec), ""
		if f.names[name] == spec.Path.Value {
			continue
		}
		if f.names[name] = spec.Path.Value; spec.Name != nil {
			as = name
		}
		f.imports = append(f.imports, fmt.Sprintf("%simport %s %s\n", line, as, spec.Path.Value))
	}
	for _, fn := range c.functions {
		f.calls[fn.original] = append(f.calls[fn.original], version)
		f.copies = append(f.copies, line+fn.before+copyName(version, fn.original)+fn.after+"\n")
	}
}

// copyName is the name of a version's function.
func copyName(version string, f *ast.FuncDecl) string {
	return "seeded_" + strings.ReplaceAll(version, "-", "_") + "_" + f.Name.Name
}

// ImportName returns the name of an imported package in a file. Without a name in the
// import, the path tells the name.
func ImportName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	whole := strings.Trim(spec.Path.Value, "`\"")
	name := path.Base(whole)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(whole))
	}
	return name
}

// edit inserts a text into an original file, in place of drop bytes.
type edit struct {
	at, drop int
	text     string
}

// woven returns the file with all additions.
func (f *file) woven() string {
	var edits []edit
	if len(f.imports) > 0 {
		at := f.offset(f.tree.Name.End())
		again := fmt.Sprintf("//line %s:%d\n", path.Base(f.set.File(f.tree.Pos()).Name()), f.set.Position(f.tree.Name.End()).Line)
		edits = append(edits, edit{at: at, text: "\n\n" + strings.Join(f.imports, "") + again})
	}
	for original, versions := range f.calls {
		edits = append(edits, f.dispatch(original, versions)...)
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.at - b.at })
	var b strings.Builder
	end := 0
	for _, e := range edits {
		b.WriteString(f.text[end:e.at])
		b.WriteString(e.text)
		end = e.at + e.drop
	}
	b.WriteString(f.text[end:])
	b.WriteString("\n")
	for _, c := range f.copies {
		b.WriteString(c)
	}
	return b.String()
}

// dispatch returns the edits by which a function calls the functions of versions. All
// parameters and the receiver get names.
func (f *file) dispatch(fn *ast.FuncDecl, versions []string) []edit {
	var edits []edit
	callee, types := "", ""
	if fn.Recv != nil {
		names, more := f.named(fn.Recv, "seededReceiver")
		callee, edits = names[0]+".", more
	}
	args, more := f.named(fn.Type.Params, "seeded")
	edits = append(edits, more...)
	if params := fn.Type.TypeParams; params != nil {
		names, more := f.named(params, "seededType")
		types, edits = "["+strings.Join(names, ", ")+"]", append(edits, more...)
	}
	var b strings.Builder
	b.WriteString(` if seededBug != "" { switch seededBug { `)
	for _, v := range versions {
		call := callee + copyName(v, fn) + types + "(" + strings.Join(args, ", ") + ")"
		if fn.Type.Results == nil {
			fmt.Fprintf(&b, "case %q: %s; return; ", v, call)
		} else {
			fmt.Fprintf(&b, "case %q: return %s; ", v, call)
		}
	}
	b.WriteString("}; };")
	return append(edits, edit{at: f.offset(fn.Body.Lbrace) + 1, text: b.String()})
}

// named returns the names of parameters as arguments, and the edits that give names to the
// parameters without.
func (f *file) named(list *ast.FieldList, prefix string) (names []string, edits []edit) {
	for _, field := range list.List {
		variadic := ""
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			variadic = "..."
		}
		if len(field.Names) == 0 {
			name := fmt.Sprintf("%s%d", prefix, len(names))
			names = append(names, name+variadic)
			edits = append(edits, edit{at: f.offset(field.Type.Pos()), text: name + " "})
		}
		for _, ident := range field.Names {
			name := ident.Name
			if name == "_" {
				name = fmt.Sprintf("%s%d", prefix, len(names))
				edits = append(edits, edit{at: f.offset(ident.Pos()), drop: 1, text: name})
			}
			names = append(names, name+variadic)
		}
	}
	return names, edits
}

func (f *file) offset(at token.Pos) int { return f.set.Position(at).Offset }
