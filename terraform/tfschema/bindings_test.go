package tfschema_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/samya-db/samya/terraform/tfschema"
)

func TestBindings(t *testing.T) {
	b := tfschema.Bindings{Files: os.DirFS("testdata/package"), Name: "cloud"}
	if v, err := b.Version(); err != nil || v != "1.2.3" {
		t.Errorf("version %s, %v", v, err)
	}
	block, err := b.Resource("cloud_compute_thing")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(block)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attributes":{` +
		`"labels":{"type":["map","string"],"computed":true},` +
		`"name":{"type":"string","required":true},` +
		`"status":{"type":["list",["object",{"ready":"bool"}]],"computed":true},` +
		`"tags":{"type":["set","string"]},` +
		`"zones":{"type":["set","string"],"computed":true}},` +
		`"blocks":{` +
		`"disk":{"nesting":"list","min":1,"block":{"attributes":{"serial":{"type":"string","computed":true},"size":{"type":"number","required":true}},` +
		`"blocks":{"key":{"nesting":"list","max":1,"block":{"attributes":{"raw":{"type":"bool"}}}}}}},` +
		`"timeouts":{"nesting":"single","block":{"attributes":{"create":{"type":"string"}}}}}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBindingsOfAnotherForm: bindings in an unknown form are refused. A skipped argument
// would be missed, and an invented argument would pass.
func TestBindingsOfAnotherForm(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", "package", "lib", "compute-thing", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	code, types := read("index.js"), read("index.d.ts")
	for name, change := range map[string]struct{ old, with string }{
		"unknown type":         {`storageClassType: "number"`, `storageClassType: "decimal"`},
		"unknown nesting":      {`type: "struct"`, `type: "tuple"`},
		"other order":          {"isBlock: false,\n                type: \"set\"", "type: \"set\",\n                isBlock: false"},
		"no converter":         {"value: computeThingTimeoutsToHclTerraform(", "value: something("},
		"converter is missing": {"function computeThingDiskKeyToHclTerraform", "function other"},
		"not declared":         {"            tags: {", "            labels2: {"},
		"told of nothing":      {"this.getStringAttribute('serial')", "this.serial_"},
		"no class":             {"extends cdktf.TerraformResource", "extends Other"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(code, change.old) {
				t.Fatalf("there is no %q", change.old)
			}
			files := fstest.MapFS{
				"lib/compute-thing/index.js":   {Data: []byte(strings.Replace(code, change.old, change.with, 1))},
				"lib/compute-thing/index.d.ts": {Data: []byte(types)},
			}
			if block, err := (tfschema.Bindings{Files: files, Name: "cloud"}).Resource("cloud_compute_thing"); err == nil {
				t.Errorf("read as %+v", block)
			}
		})
	}
}

// TestSchemasAreOfWhatIsUsed: the kept schemas have every kind of resource that a
// configuration names, and no other.
func TestSchemasAreOfWhatIsUsed(t *testing.T) {
	dir := filepath.Join("..", "..", "terraform")
	for _, provider := range []string{"google", "aws"} {
		resources, data, err := tfschema.Used(os.DirFS(dir), provider)
		if err != nil || len(resources) < 10 {
			t.Fatalf("%s: %v uses %v", provider, err, resources)
		}
		p, err := tfschema.Read(filepath.Join(dir, "schemas", provider+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(resources, names(p.Resources)) || !slices.Equal(data, names(p.Data)) {
			t.Errorf("%s: used %v %v, kept %v %v: run `make terraform-schemas`", provider, resources, data, names(p.Resources), names(p.Data))
		}
		if !strings.Contains(p.Notice, "MPL-2.0") {
			t.Errorf("%s: the notice is gone: %q", provider, p.Notice)
		}
	}
	if _, err := fs.Stat(os.DirFS(dir), "schemas/LICENSE"); err != nil {
		t.Error(err)
	}
}

func names(blocks map[string]*tfschema.Block) []string {
	var all []string
	for name := range blocks {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
