package terraform_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/terraform/tfreference"
	"github.com/samya-db/samya/terraform/tofutest"
)

var update = flag.Bool("update", false, "write the reference anew")

// TestReference: the reference matches the configurations that an operator applies. The
// module that they use is described in its own files.
func TestReference(t *testing.T) {
	dir := filepath.Join(tofutest.Root(t), "terraform")
	want, err := tfreference.Write(os.DirFS(dir), []tfreference.Section{
		{Title: "terraform/local", Dir: "local"},
		{Title: "terraform/google", Dir: "google"},
		{Title: "terraform/aws", Dir: "aws"},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "reference.md")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // to be read by all
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s is not what the configurations say (%v): run `make terraform-docs`", path, err)
	}
}
