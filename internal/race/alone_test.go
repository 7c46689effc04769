package race_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAlone: no package that `make race` leaves out starts a goroutine, in its code or
// its tests, or imports a tool for goroutines.
func TestAlone(t *testing.T) {
	list, err := os.ReadFile("alone.txt")
	if err != nil {
		t.Fatal(err)
	}
	for dir := range strings.FieldsSeq(string(list)) {
		for _, place := range concurrent(t, dir) {
			t.Errorf("%s: leave %s out of alone.txt", place, dir)
		}
	}
	for _, dir := range []string{"internal/mux", "site/engine", "kvpart", "devcluster/load"} {
		if len(concurrent(t, dir)) == 0 {
			t.Errorf("%s has goroutines, and the test sees none", dir)
		}
	}
}

// concurrent lists the places of a package with goroutines, or with tools for them.
func concurrent(t *testing.T, dir string) (places []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s: %d files, %v", dir, len(files), err)
	}
	for _, path := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name := tool(n); name != "" {
				places = append(places, set.Position(n.Pos()).String()+": "+name)
			}
			return true
		})
	}
	return places
}

// tool names a start of a goroutine, or an import that serves goroutines.
func tool(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectorExpr:
		if slices.Contains([]string{"Go", "Parallel", "AfterFunc", "RunParallel"}, n.Sel.Name) {
			return n.Sel.Name
		}
	case *ast.ImportSpec:
		for _, p := range []string{"sync", "net/http", "os/exec", "golang.org/x/sync", "google.golang.org/grpc", "go.etcd.io/bbolt", "github.com/cockroachdb"} {
			if path := strings.Trim(n.Path.Value, `"`); path == p || strings.HasPrefix(path, p+"/") && p != "google.golang.org/grpc" {
				return path
			}
		}
	}
	return ""
}
