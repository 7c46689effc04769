package tfreference_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/samya-db/samya/terraform/tfreference"
)

const (
	variables = `variable "size" {
  description = "How \"big\" it is."
  type        = number
  default     = 3

  validation {
    condition     = var.size > 0
    error_message = "It must be above 0."
  }
}

variable "disk" {
  description = "Its disk."
  type = object({
    size = number
  })
}
`
	outputs = `output "address" {
  description = "Where it is: a | b."
  value       = "x"
}
`
)

func TestWrite(t *testing.T) {
	got, err := tfreference.Write(fstest.MapFS{
		"a/variables.tf": {Data: []byte(variables)}, "a/outputs.tf": {Data: []byte(outputs)},
	}, []tfreference.Section{{Title: "A", Dir: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(got), "## A\n")
	want := "\n### Variables\n\n#### `disk`\n\nIts disk.\n\n```hcl\ntype = object({\n  size = number\n})\n```\n\nRequired.\n" +
		"\n#### `size`\n\nHow \"big\" it is.\n\n```hcl\ntype = number\ndefault = 3\n```\n" +
		"\n### Outputs\n\n| output | what it tells |\n|---|---|\n| `address` | Where it is: a \\| b. |\n"
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestWriteAgain: an earlier section's words are not told again.
func TestWriteAgain(t *testing.T) {
	got, err := tfreference.Write(fstest.MapFS{
		"a/variables.tf": {Data: []byte(variables)}, "a/outputs.tf": {Data: []byte(outputs)},
		"b/variables.tf": {Data: []byte(strings.Replace(variables, "= 3", "= 4", 1))}, "b/outputs.tf": {Data: []byte(outputs)},
	}, []tfreference.Section{{Title: "A", Dir: "a"}, {Title: "B", Dir: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(got), "## B\n")
	want := "\n### Variables\n\nAs in A: `disk`.\n\n#### `size`\n\nAs in A.\n\n```hcl\ntype = number\ndefault = 4\n```\n" +
		"\n### Outputs\n\nAs in A: `address`.\n"
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestWithoutADescription(t *testing.T) {
	for name, text := range map[string]string{
		"no description": strings.Replace(variables, "  description = \"Its disk.\"\n", "", 1),
		"no type":        strings.Replace(variables, "  type        = number\n", "", 1),
		"another form":   strings.Replace(variables, `variable "disk" {`, `variable "disk"  {`, 1),
	} {
		_, err := tfreference.Write(fstest.MapFS{
			"a/variables.tf": {Data: []byte(text)}, "a/outputs.tf": {Data: []byte(outputs)},
		}, []tfreference.Section{{Title: "A", Dir: "a"}})
		if !errors.Is(err, tfreference.ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
