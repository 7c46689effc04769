package main

import (
	"os"
	"testing"

	"github.com/samya-db/samya/internal/flagtest"
)

// TestFlags: testdata/flags.txt lists all flags, for the test of one vocabulary in
// lab/cmd/samya-lab; run it with -update and look.
func TestFlags(t *testing.T) {
	const file = "testdata/flags.txt"
	text := flagtest.Text(flagtest.Of(new(program).root()))
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil || text != string(b) {
		t.Errorf("%s is stale (%v): go test ./cmd/samya -run TestFlags -update", file, err)
	}
}
