package mutants_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/mutants"
)

// root is the root of the module, from this directory.
const root = "../.."

func catalogue(t *testing.T) []mutants.Bug {
	t.Helper()
	bugs, err := mutants.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	return bugs
}

// TestCatalogue checks that there are enough bugs of each sort.
func TestCatalogue(t *testing.T) {
	bugs := catalogue(t)
	count := make(map[string]int)
	for _, b := range bugs {
		count[b.Variant]++
		count[b.Kind]++
		count["judged by "+b.Judge]++
		if b.Judge != mutants.JudgeSim {
			continue
		}
		if b.Explore != "" {
			count["searched"]++
		}
		if mode := b.Modes[0]; mode == "auto" || mode == "switch" {
			count["auto or switch"]++
		}
	}
	for what, least := range map[string]int{
		"majority": 8, "star": 8, "core": 8, "redistribute": 8, "transfer": 12, "log": 12, "persistence": 6, "retry": 5, "safety": 15,
		"searched": 15, "auto or switch": 8, "judged by test": 70, "judged by order": 17, "race": 10, "credentials": 18,
		"mux": 12, "frames": 7, "access": 15, "tls": 8, "shares": 8, "client": 9, "engine": 7, "partitions": 5, "membership": 5, "doctor": 8, "handoff": 20,
	} {
		if count[what] < least {
			t.Errorf("%d bugs are %q, want at least %d", count[what], what, least)
		}
	}
	if len(bugs) < 40 {
		t.Errorf("%d bugs, want at least 40", len(bugs))
	}
}

// TestNamedTestsExist: the files of bugs name packages and tests that exist.
func TestNamedTestsExist(t *testing.T) {
	names := make(map[string][]string)
	for _, b := range catalogue(t) {
		for _, dir := range b.Tests {
			if names[dir] == nil {
				names[dir] = testsIn(t, filepath.Join(root, dir))
			}
		}
		for _, run := range b.Run {
			named := regexp.MustCompile("^(?:" + run + ")$")
			if !slices.ContainsFunc(b.Tests, func(dir string) bool { return slices.ContainsFunc(names[dir], named.MatchString) }) {
				t.Errorf("%s: no test in %v is named %q", b.Name, b.Tests, run)
			}
		}
	}
}

// testsIn returns the names of the tests of the package in a folder.
func testsIn(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{""}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

func TestApplyRefusesRottenBug(t *testing.T) {
	for name, old := range map[string]string{"nowhere": "no such text\n", "twice": "}\n"} {
		b := mutants.Bug{Name: name, Edits: []mutants.Edit{{File: "avantan/decide.go", Old: old, New: "x\n"}}}
		if _, err := b.Apply(root); !errors.Is(err, mutants.ErrRotten) {
			t.Errorf("%s: got %v, want ErrRotten", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	const head = "says: s\nrule: r\nvariant: star\nkind: retry\nmodes: star auto\nstrategy: transfer\nmembers: joins losses\nrates: yes\nsites: 7\nseeds: 900\n"
	const edit = "--- file a/b.go\n--- old\nx\ny\n--- new\n--- old\nz\n--- new\nw\n"
	b, err := mutants.Parse("n", head+edit)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Edits) != 2 || b.Edits[0] != (mutants.Edit{File: "a/b.go", Old: "x\ny\n"}) ||
		b.Edits[1] != (mutants.Edit{File: "a/b.go", Old: "z\n", New: "w\n"}) {
		t.Errorf("edits are %+v", b.Edits)
	}
	if b.Sites != 7 || b.Seeds != 900 || b.Strategy != "transfer" || !b.Rates || !slices.Equal(b.Members, []string{"joins", "losses"}) {
		t.Errorf("%d sites, %d seeds, strategy %q and members %q, want 7, 900, transfer, joins and losses", b.Sites, b.Seeds, b.Strategy, b.Members)
	}
	if b, err = mutants.Parse("n", strings.Replace(head, "strategy: transfer\n", "", 1)+edit); err != nil || b.Strategy != "instance" {
		t.Errorf("without a strategy it is %q, %v", b.Strategy, err)
	}
	for name, text := range map[string]string{
		"empty":           "",
		"no edits":        head,
		"unknown header":  "x: y\n" + head + edit,
		"unknown variant": strings.Replace(head, "star\nkind", "sta\nkind", 1) + edit,
		"unknown kind":    strings.Replace(head, "retry", "try", 1) + edit,
		"too many sites":  strings.Replace(head, "sites: 7", "sites: 10", 1) + edit,
		"negative seeds":  strings.Replace(head, "seeds: 900", "seeds: -1", 1) + edit,
		"strategy":        strings.Replace(head, "transfer", "post", 1) + edit,
		"unknown change":  strings.Replace(head, "joins", "leaves", 1) + edit,
		"unknown mode":    strings.Replace(head, "auto", "manual", 1) + edit,
		"unknown mark":    head + "--- other\n",
		"same text":       head + "--- file a.go\n--- old\nx\n--- new\nx\n",
		"file outside":    head + "--- file ../a.go\n--- old\nx\n--- new\n",
	} {
		if _, err := mutants.Parse(name, text); !errors.Is(err, mutants.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestParseJudgedByTests(t *testing.T) {
	const head = "says: s\nrule: r\nvariant: mux\nkind: race\njudge: test\ntests: ./internal/mux ./client\nrun: TestA Test.*B\ntimeout: 30s\nhangs: yes\n"
	const edit = "--- file a/b.go\n--- old\nx\n--- new\ny\n"
	b, err := mutants.Parse("n", head+edit)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Tests, []string{"./internal/mux", "./client"}) || !slices.Equal(b.Run, []string{"TestA", "Test.*B"}) ||
		b.Timeout != 30*time.Second || !b.Hangs {
		t.Errorf("it is %+v", b)
	}
	for name, text := range map[string]string{
		"no tests":              strings.Replace(head, "tests: ./internal/mux ./client\n", "", 1),
		"tests of a simulation": strings.Replace(head, "judge: test\n", "modes: star\n", 1),
		"modes":                 head + "modes: star\n",
		"all packages":          strings.Replace(head, "./client", "./...", 1),
		"package outside":       strings.Replace(head, "./client", "./../client", 1),
		"no pattern":            strings.Replace(head, "TestA", "Test(", 1),
		"a subtest":             strings.Replace(head, "TestA", "TestA/b", 1),
		"no time":               strings.Replace(head, "30s", "0s", 1),
		"hangs perhaps":         strings.Replace(head, "yes", "maybe", 1),
		"unknown judge":         strings.Replace(head, "judge: test", "judge: me", 1),
		"unknown variant":       strings.Replace(head, "mux\nkind", "mix\nkind", 1),
	} {
		if _, err := mutants.Parse(name, text+edit); !errors.Is(err, mutants.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestParseJudgedByOrder(t *testing.T) {
	const head = "says: s\nrule: r\nvariant: kvpart\nkind: race\njudge: order\nsubject: seed=1\nexpect: deadlock\n"
	const edit = "--- file a/b.go\n--- old\nx\n--- new\ny\n"
	b, err := mutants.Parse("n", head+edit)
	if err != nil || b.Subject != "seed=1" || !b.Deadlock {
		t.Fatalf("it is %+v, %v", b, err)
	}
	for name, text := range map[string]string{
		"no subject":              strings.Replace(head, "subject: seed=1\n", "", 1),
		"unknown subject":         strings.Replace(head, "seed", "size", 1),
		"another expectation":     strings.Replace(head, "deadlock", "panic", 1),
		"tests as well":           head + "tests: ./kvpart\n",
		"modes":                   head + "modes: star\n",
		"a variant out of reach":  strings.Replace(head, "variant: kvpart", "variant: mux", 1),
		"a subject of tests":      strings.Replace(head, "judge: order\n", "judge: test\ntests: ./kvpart\n", 1),
		"a subject of simulation": strings.Replace(head, "judge: order\n", "modes: star\n", 1),
	} {
		if _, err := mutants.Parse(name, text+edit); !errors.Is(err, mutants.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestSample(t *testing.T) {
	bugs := catalogue(t)
	for n, want := range map[int]int{0: len(bugs), 7: 7, len(bugs): len(bugs), len(bugs) + 1: len(bugs)} {
		if got := mutants.Sample(bugs, n); len(got) != want {
			t.Errorf("%d bugs of %d are %d", n, len(bugs), len(got))
		}
	}
	variants := make(map[string]bool)
	for _, b := range mutants.Sample(mutants.JudgedBy(bugs, mutants.JudgeSim), 24) {
		variants[b.Variant] = true
	}
	if len(variants) != len(mutants.SimVariants()) {
		t.Errorf("a sample of 24 is of the variants %v only", variants)
	}
}

func TestSelect(t *testing.T) {
	bugs := catalogue(t)
	got, err := mutants.Select(bugs, []string{bugs[3].Name})
	if err != nil || len(got) != 1 || got[0].Name != bugs[3].Name {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := mutants.Select(bugs, []string{"none"}); !errors.Is(err, mutants.ErrUnknownBug) {
		t.Errorf("got %v, want ErrUnknownBug", err)
	}
}
