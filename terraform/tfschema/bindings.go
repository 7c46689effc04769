package tfschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Bindings reads schemas from a package of bindings for JavaScript. The Cloud
// Development Kit for Terraform generates the bindings from a provider's schema. Each
// kind has a directory with index.js and index.d.ts. The bindings hold the whole schema:
// which arguments are blocks, their types, and whether they are required or computed.
type Bindings struct {
	// Files is the package.
	Files fs.FS
	// Name is the provider's name.
	Name string
}

// errForm says that a file does not have the expected form.
var errForm = errors.New("not of the form of generated bindings")

var version = regexp.MustCompile(`bindings for hashicorp/([a-z]+) provider version ([0-9.]+)`)

// Version returns the version of the provider in the bindings.
func (b Bindings) Version() (string, error) {
	text, err := fs.ReadFile(b.Files, "README.md")
	if err != nil {
		return "", fmt.Errorf("read the version of the provider: %w", err)
	}
	m := version.FindSubmatch(text)
	if m == nil || string(m[1]) != b.Name {
		return "", fmt.Errorf("README.md names no version of %s: %w", b.Name, errForm)
	}
	return string(m[2]), nil
}

// Resource reads a kind of resource, such as google_compute_disk.
func (b Bindings) Resource(kind string) (*Block, error) {
	return b.read(kind, strings.ReplaceAll(strings.TrimPrefix(kind, b.Name+"_"), "_", "-"))
}

// Data reads a kind of data source.
func (b Bindings) Data(kind string) (*Block, error) {
	return b.read(kind, "data-"+strings.ReplaceAll(kind, "_", "-"))
}

// Config reads the configuration of the provider itself.
func (b Bindings) Config() (*Block, error) { return b.read("provider", "provider") }

func (b Bindings) read(kind, dir string) (*Block, error) {
	f := file{}
	for name, to := range map[string]*string{"index.js": &f.code, "index.d.ts": &f.types} {
		text, err := fs.ReadFile(b.Files, "lib/"+dir+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", kind, err)
		}
		*to = string(text)
	}
	block, err := f.top()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	return block, nil
}

// file is the bindings of a kind.
type file struct{ code, types string }

// argument matches an entry of the table of a block's arguments.
var argument = regexp.MustCompile(`(?m)^            (\w+): \{\n                value: (.*),\n                isBlock: (true|false),\n                type: "(\w+)",\n                storageClassType: "(\w+)",\n            \},\n`)

// nestedArgument matches an entry in the function of a nested block.
var nestedArgument = regexp.MustCompile(`(?m)^        (\w+): \{\n            value: (.*),\n            isBlock: (true|false),\n            type: "(\w+)",\n            storageClassType: "(\w+)",\n        \},\n`)

// converter names the function that writes a nested block.
var converter = regexp.MustCompile(`(\w+)ToHclTerraform\b`)

// top reads the kind itself, whose class ends the file.
func (f file) top() (*Block, error) {
	const open = "    synthesizeHclAttributes() {\n        const attrs = {\n"
	table, err := between(f.code, open, "        };\n")
	if err != nil {
		return nil, err
	}
	block := &Block{Attributes: map[string]*Attribute{}, Blocks: map[string]*Nested{}}
	config, err := f.interfaceOf(regexp.MustCompile(`(?m)^export interface (\w+Config) extends cdktf\.TerraformMetaArguments \{\n`))
	if err != nil {
		// The provider itself lacks the arguments that all resources share.
		if config, err = f.interfaceOf(regexp.MustCompile(`(?m)^export interface (\w+ProviderConfig) \{\n`)); err != nil {
			return nil, err
		}
	}
	if err := f.arguments(block, argument, table, config); err != nil {
		return nil, err
	}
	class := regexp.MustCompile(`(?m)^class \w+ extends cdktf\.Terraform(Resource|DataSource|Provider) \{\n`).FindStringIndex(f.code)
	if class == nil {
		return nil, fmt.Errorf("there is no class: %w", errForm)
	}
	// alias names a configuration: OpenTofu takes it before the provider sees it.
	delete(block.Attributes, "alias")
	return block, f.told(block, f.code[class[0]:])
}

// nested reads the block that the function of the name writes.
func (f file) nested(name string) (*Block, error) {
	body, err := between(f.code, "\nfunction "+name+"ToHclTerraform(struct) {\n", "\n}\n")
	if err != nil {
		return nil, err
	}
	block := &Block{Attributes: map[string]*Attribute{}, Blocks: map[string]*Nested{}}
	class := strings.ToUpper(name[:1]) + name[1:]
	if _, table, some := strings.Cut(body, "    const attrs = {\n"); some {
		fields, err := f.interfaceOf(regexp.MustCompile(`(?m)^export interface (` + class + `) \{\n`))
		if err != nil {
			return nil, err
		}
		if err := f.arguments(block, nestedArgument, table, fields); err != nil {
			return nil, err
		}
	}
	if outputs, ok := f.class(class + "OutputReference"); ok {
		return block, f.told(block, outputs)
	}
	return block, nil
}

// arguments reads the entries of a table into block.
func (f file) arguments(block *Block, entry *regexp.Regexp, table string, fields map[string]field) error {
	found := entry.FindAllStringSubmatch(table, -1)
	if n := strings.Count(table, "isBlock: "); n != len(found) {
		return fmt.Errorf("%d of %d arguments are understood: %w", len(found), n, errForm)
	}
	for _, m := range found {
		name, value, isBlock, kind, storage := m[1], m[2], m[3] == "true", m[4], m[5]
		declared, ok := fields[name]
		if !ok {
			return fmt.Errorf("argument %s is not declared: %w", name, errForm)
		}
		if !isBlock {
			t, err := typeOf(kind, storage)
			if err != nil {
				return fmt.Errorf("argument %s: %w", name, err)
			}
			block.Attributes[name] = &Attribute{Type: t, Required: declared.required}
			continue
		}
		function := ""
		for _, c := range converter.FindAllStringSubmatch(value, -1) {
			function = c[1]
		}
		if function == "" {
			return fmt.Errorf("block %s is written by nothing: %w", name, errForm)
		}
		inner, err := f.nested(function)
		if err != nil {
			return fmt.Errorf("block %s: %w", name, err)
		}
		n := &Nested{Nesting: kind, Block: inner}
		switch {
		case kind == "struct":
			n.Nesting = "single"
		case kind != "list" && kind != "set":
			return fmt.Errorf("block %s is a %s: %w", name, kind, errForm)
		case !declared.many:
			n.Max = 1
		}
		if declared.required && n.Nesting != "single" {
			n.Min = 1
		}
		block.Blocks[name] = n
	}
	return nil
}

// field is the declaration of an argument.
type field struct{ required, many bool }

var declaration = regexp.MustCompile(`(?s)#(\w+) [\w]+#\w+\}.*?\*/\s+readonly \w+(\??): ([^;]+);`)

// interfaceOf reads the declarations of the interface that begins with head.
func (f file) interfaceOf(head *regexp.Regexp) (map[string]field, error) {
	at := head.FindStringIndex(f.types)
	if at == nil {
		return nil, fmt.Errorf("no interface matches %s: %w", head, errForm)
	}
	body, _, _ := strings.Cut(f.types[at[1]:], "\n}\n")
	fields := make(map[string]field)
	for _, m := range declaration.FindAllStringSubmatch(body, -1) {
		fields[m[1]] = field{required: m[2] == "", many: strings.Contains(m[3], "[]")}
	}
	if n := strings.Count(body, "    readonly "); n != len(fields) {
		return nil, fmt.Errorf("%d of %d declarations of %s are understood: %w", len(fields), n, head, errForm)
	}
	return fields, nil
}

var (
	computed = regexp.MustCompile(`(?m)^ +// (\w+) - computed: true, optional: (?:false|true), required: false\n`)
	simple   = regexp.MustCompile(`this\.get(\w+)Attribute\('(\w+)'\)`)
	compound = regexp.MustCompile(`= new (\w+?)(List|Map|OutputReference)\(this, "(\w+)"(?:, (true|false))?\)`)
)

// told reads the computed attributes of a class into block: attributes that only the
// provider sets.
func (f file) told(block *Block, class string) error {
	for _, m := range computed.FindAllStringSubmatchIndex(class, -1) {
		name := class[m[2]:m[3]]
		// The type of the attribute stands in the next two lines.
		lines := strings.SplitN(class[m[1]:], "\n", 3)
		next := strings.Join(lines[:min(len(lines), 2)], "\n")
		if block.Attributes[name] != nil || block.Blocks[name] != nil {
			continue
		}
		t, err := f.toldType(name, next)
		if err != nil {
			return err
		}
		block.Attributes[name] = &Attribute{Type: t, Computed: true}
	}
	return nil
}

func (f file) toldType(name, text string) (json.RawMessage, error) {
	if m := simple.FindStringSubmatch(text); m != nil && m[2] == name {
		list := "list"
		if strings.Contains(text, "Fn.tolist(") {
			list = "set"
		}
		switch m[1] {
		case "String", "Number", "Boolean":
			return typeOf("simple", strings.ToLower(m[1]))
		case "List":
			return typeOf(list, "stringList")
		case "NumberList":
			return typeOf(list, "numberList")
		}
	}
	if m := compound.FindStringSubmatch(text); m != nil && m[3] == name && m[2] == "List" {
		class, ok := f.class(m[1] + "OutputReference")
		if !ok {
			return nil, fmt.Errorf("%s tells of %s, which is not there: %w", name, m[1], errForm)
		}
		inner := &Block{Attributes: map[string]*Attribute{}}
		if err := f.told(inner, class); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		object := make(map[string]json.RawMessage, len(inner.Attributes))
		for n, a := range inner.Attributes {
			object[n] = a.Type
		}
		list := "list"
		if m[4] == "true" {
			list = "set"
		}
		return json.Marshal([]any{list, []any{"object", object}})
	}
	if m := regexp.MustCompile(`new cdktf\.(String|Number|Boolean|Any)Map\(this, "(\w+)"\)`).FindStringSubmatch(text); m != nil && m[2] == name && m[1] != "Any" {
		return typeOf("map", strings.ToLower(m[1])+"Map")
	}
	return nil, fmt.Errorf("what is told of %s is not understood: %q: %w", name, text, errForm)
}

// class returns the text of a class.
func (f file) class(name string) (string, bool) {
	body, err := between(f.code, "\nclass "+name+" extends cdktf.ComplexObject {\n", "\n}\n")
	return body, err == nil
}

// typeOf returns a type in the form of cty.
func typeOf(kind, storage string) (json.RawMessage, error) {
	element := strings.TrimSuffix(strings.TrimSuffix(storage, "List"), "Map")
	switch element {
	case "boolean":
		element = "bool"
	case "string", "number":
	default:
		return nil, fmt.Errorf("type %s of %s: %w", kind, storage, errForm)
	}
	switch kind {
	case "simple":
		if strings.HasSuffix(storage, "List") || strings.HasSuffix(storage, "Map") {
			return nil, fmt.Errorf("type %s of %s: %w", kind, storage, errForm)
		}
		return json.Marshal(element)
	case "list", "set", "map":
		return json.Marshal([]string{kind, element})
	}
	return nil, fmt.Errorf("type %s of %s: %w", kind, storage, errForm)
}

// between returns the text between open and the next end.
func between(text, open, end string) (string, error) {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return "", fmt.Errorf("there is no %q: %w", strings.TrimSpace(open), errForm)
	}
	body, _, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("%q does not end: %w", strings.TrimSpace(open), errForm)
	}
	return body, nil
}
