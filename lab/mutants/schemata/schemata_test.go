package schemata_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/mutants/schemata"
)

// original has functions and methods of every form. Its lines are what versions change.
const original = `package main

import (
	"fmt"
	"strings"
)

type pair[K comparable, V any] struct {
	key   K
	value V
}

func (p *pair[K, V]) set(v V) { p.value = v }

func (p pair[K, _]) same(k K) bool { return p.key == k }

func pick[T any, S ~[]T](list S, at int) (got T, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("no %d", at)
		}
	}()
	got = list[at]
	return
}

type count int

func (count) unnamed(int, string) int { return 1 }

func (_ count) blank(_, b int, _ ...string) int { return b }

func (c *count) add(by ...int) {
	for _, n := range by {
		*c += count(n)
	}
}

func recursive(n int) int {
	if n == 0 {
		return 0
	}
	return recursive(n-1) + 1
}

func shout(s string) string { return strings.ToUpper(s) }

func unused() {}

func protect(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return "no panic"
}

func calls(f func(...int) int, xs ...int) int { return f(xs...) }

func nothing() {}

var early = shout("early")

const size = 3

func main() {
	p := pair[string, int]{key: "k"}
	p.set(4)
	got, err := pick([]int{7, 8}, 1)
	_, missing := pick([]int{7, 8}, 2)
	var c count
	c.add(1, 2, 3)
	nothing()
	fmt.Println(p.value, p.same("k"), got, err, missing, c, c.unnamed(1, ""), c.blank(1, 2, "x"), recursive(3), shout("a"), early,
		protect(func() { panic("p") }), calls(func(n ...int) int { return len(n) }, 1, 2), size)
}
`

const output = "4 true 8 <nil> no 2 6 1 2 3 A EARLY p 2 3"

// versions change original, and print another line.
var versions = []struct{ name, old, new, want string }{
	{"method-of-generic", "p.value = v", "_ = v", "0 true 8 <nil> no 2 6 1 2 3 A EARLY p 2 3"},
	{"by-value", "return p.key == k", "return p.key != k", "4 false 8 <nil> no 2 6 1 2 3 A EARLY p 2 3"},
	{"generic", "got = list[at]", "got = list[at-1]", "4 true 7 <nil> <nil> 6 1 2 3 A EARLY p 2 3"},
	{"unnamed", "string) int { return 1 }", "string) int { return 5 }", "4 true 8 <nil> no 2 6 5 2 3 A EARLY p 2 3"},
	{"names-appear", "unnamed(int, string) int { return 1 }", "unnamed(n int, _ string) int { return n + 8 }", "4 true 8 <nil> no 2 6 9 2 3 A EARLY p 2 3"},
	{"blank", "...string) int { return b }", "...string) int { return -b }", "4 true 8 <nil> no 2 6 1 -2 3 A EARLY p 2 3"},
	{"variadic", "*c += count(n)", "*c -= count(n)", "4 true 8 <nil> no 2 -6 1 2 3 A EARLY p 2 3"},
	{"recursive", "recursive(n-1) + 1", "recursive(n-1) + 2", "4 true 8 <nil> no 2 6 1 2 6 A EARLY p 2 3"},
	{"import-goes", "return strings.ToUpper(s)", "return s", "4 true 8 <nil> no 2 6 1 2 3 a early p 2 3"},
	{"import-comes", "", "", "y " + output},
	{"function-goes", "func unused() {}\n", "", output},
	{"variadic-function", "return f(xs...)", "return f(xs[1:]...)", "4 true 8 <nil> no 2 6 1 2 3 A EARLY p 1 3"},
	{"no-result", "func nothing() {}", "func nothing() {\n\tfmt.Print(\"x \")\n}", "x " + output},
	{"several-functions", "", "", "4 true 8 <nil> no 2 6 1 2 9 a! early! p 2 3"},
	{"not-compiled", "return f(xs...)", "return nil", ""},
}

// change returns the text of a version.
func change(t *testing.T, name, old, to string) string {
	t.Helper()
	switch name {
	case "import-comes":
		text := strings.Replace(original, "import (\n", "import (\n\t\"os\"\n", 1)
		return strings.Replace(text, "func nothing() {}", "func nothing() { _, _ = os.Stdout.WriteString(\"y \") }", 1)
	case "several-functions":
		text := strings.Replace(original, "return strings.ToUpper(s)", "return s + \"!\"", 1)
		return strings.Replace(text, "return recursive(n-1) + 1", "return 9", 1)
	}
	if strings.Count(original, old) != 1 {
		t.Fatalf("%s: %q occurs %d times", name, old, strings.Count(original, old))
	}
	return strings.Replace(original, old, to, 1)
}

// TestWeave compiles all versions into one program, and runs each.
func TestWeave(t *testing.T) {
	race.OtherProcesses(t)
	var list []schemata.Version
	want := map[string]string{"": output}
	for _, v := range versions {
		list = append(list, schemata.Version{Name: v.name, Files: map[string]string{"main.go": change(t, v.name, v.old, v.new)}})
		if v.want != "" {
			want[v.name] = v.want
		}
	}
	if said, err := compile(t, weave(t, list)); err == nil || !slices.Equal(schemata.Versions(said, list), []string{"not-compiled"}) {
		t.Fatalf("the compiler names versions %q, %v, want not-compiled alone:\n%s", schemata.Versions(said, list), err, said)
	}
	list = slices.DeleteFunc(list, func(v schemata.Version) bool { return v.Name == "not-compiled" })
	program, err := compile(t, weave(t, list))
	if err != nil {
		t.Fatalf("%v:\n%s", err, program)
	}
	for name, line := range want {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), schemata.Env+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != line {
			t.Errorf("%q prints %q, %v, want %q", name, out, err, line)
		}
	}
}

// weave weaves versions of original.
func weave(t *testing.T, list []schemata.Version) map[string]string {
	t.Helper()
	woven, err := schemata.Weave(func(string) (string, error) { return original, nil }, list)
	if err != nil || len(woven.Refused) > 0 {
		t.Fatalf("%v; refused are %v", err, woven.Refused)
	}
	return woven.Files
}

// compile builds a program, and returns its path, or the output of the compiler.
func compile(t *testing.T, files map[string]string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	files = maps.Clone(files)
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", "program", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return string(out), err
	}
	return filepath.Join(dir, "program"), nil
}

// TestRefuses: a version that changes more than bodies is refused, and tells why.
func TestRefuses(t *testing.T) {
	for name, change := range map[string][2]string{
		"changes a type, a constant or a variable": {"const size = 3", "const size = 4"},
		"parameters or results change":             {"func shout(s string) string {", "func shout(s string, _ ...int) string {"},
		"a method is removed":                      {"func (p *pair[K, V]) set(v V) { p.value = v }\n", ""},
		"adds more":                                {"func unused() {}", "func more() {}"},
		"recovers from a panic":                    {"func unused() {}", "func unused() { _ = recover() }"},
		"imports another package strings":          {"\t\"strings\"\n", "\tstrings \"bytes\"\n"},
		"expected":                                 {"func unused() {}", "func unused() {"},
	} {
		text := strings.Replace(original, change[0], change[1], 1)
		good := schemata.Version{Name: "good", Files: map[string]string{"main.go": strings.Replace(original, "return 0", "return 2", 1)}}
		bad := schemata.Version{Name: "bad", Files: map[string]string{"main.go": text}}
		woven, err := schemata.Weave(func(string) (string, error) { return original, nil }, []schemata.Version{bad, good})
		why := woven.Refused["bad"]
		if err != nil || len(woven.Refused) != 1 || !errors.Is(why, schemata.ErrRefused) || !strings.Contains(fmt.Sprint(why), name) {
			t.Errorf("%s: %v, %v", name, err, why)
		}
		if all := woven.Files["main.go"]; strings.Contains(all, "seeded_bad_") || !strings.Contains(all, "seeded_good_") {
			t.Errorf("%s: it gives\n%s", name, all)
		}
	}
}
