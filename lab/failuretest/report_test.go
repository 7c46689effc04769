package failuretest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// figure is a number that a test ends with.
type figure struct {
	name  string
	value any
}

type figures []figure

// reports are the tests' figures, printed when all have ended.
var reports struct {
	mu  sync.Mutex
	all []string
}

// report prints the figures of a test: a line of JSON in its log, and a line in the
// summary for people.
func report(t *testing.T, fs figures) {
	t.Helper()
	line := map[string]any{"test": t.Name(), "passed": !t.Failed()}
	words := []string{"ok  "}
	if t.Failed() {
		words[0] = "FAIL"
	}
	words = append(words, fmt.Sprintf("%-44s", t.Name()))
	for _, f := range fs {
		line[f.name] = f.value
		words = append(words, fmt.Sprintf("%s %v", f.name, f.value))
	}
	text, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("figures %s", text)
	reports.mu.Lock()
	defer reports.mu.Unlock()
	reports.all = append(reports.all, strings.Join(words, "  "))
}

// summary is the table of all tests that told figures.
func summary() string {
	reports.mu.Lock()
	defer reports.mu.Unlock()
	slices.Sort(reports.all)
	return strings.Join(reports.all, "\n")
}
