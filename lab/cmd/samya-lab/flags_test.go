package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/samya-db/samya/internal/flagtest"
)

// TestVocabulary: the commands of samya and samya-lab have one vocabulary of flags. A test
// of cmd/samya keeps the list of its flags.
func TestVocabulary(t *testing.T) {
	list, err := os.ReadFile("../../../cmd/samya/testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	flags, err := flagtest.Read(bytes.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range flagtest.Faults(append(flags, flagtest.Of(new(lab).root())...)) {
		t.Error(fault)
	}
}
