package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPackAndUnpack: files come back as they were, and the same files give the same
// package. A package is never written over another.
func TestPackAndUnpack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	files := map[string][]byte{"site.db": bytes.Repeat([]byte("x"), 100_000), "empty": nil}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(from, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packs := t.TempDir()
	var raw [2][]byte
	for i, name := range []string{"1", "2"} {
		pack := filepath.Join(packs, name)
		if err := Pack(pack, from); err != nil {
			t.Fatal(err)
		}
		var err error
		if raw[i], err = os.ReadFile(pack); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(raw[0], raw[1]) {
		t.Error("the same files give two packages")
	}
	if err := Pack(filepath.Join(packs, "1"), from); err == nil {
		t.Error("a package is written over another")
	}
	if err := Unpack(to, filepath.Join(packs, "1")); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
	}
	if err := os.WriteFile(filepath.Join(packs, "cut"), raw[0][:len(raw[0])/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(t.TempDir(), filepath.Join(packs, "cut")); err == nil {
		t.Error("a package that was cut off is unpacked")
	}
}
