package kvpart_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/samya-db/samya/kvpart"
	_ "github.com/samya-db/samya/kvpart/engine/bbolt" // for the tests
	_ "github.com/samya-db/samya/kvpart/engine/hash"  // for the tests
)

// TestKvpartImportsNoOtherBackend: whoever imports kvpart gets the default backend, and
// the modules of no other.
func TestKvpartImportsNoOtherBackend(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := string(out)
	if !strings.Contains(all, "kvpart/engine/btree\n") {
		t.Errorf("the default backend is not among the dependencies:\n%s", all)
	}
	for _, unwanted := range []string{"bbolt", "xsync", "kvpart/engine/hash", "boltfile"} {
		if strings.Contains(all, unwanted) {
			t.Errorf("%s is among the dependencies", unwanted)
		}
	}
}

func TestDefaultBackend(t *testing.T) {
	s := open(t, kvpart.Options{Strategy: kvpart.Soft})
	defer closing(t, s)
	if err := s.Write(t.Context(), "k", nil); err != nil {
		t.Error(err)
	}
}
