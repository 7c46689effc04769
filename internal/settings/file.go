package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// maxFile bounds a file, in bytes.
const maxFile = 1 << 20

// File is a file with known keys only, and with values of the right types. The command
// checks all further rules.
type File struct {
	name     string
	sections map[string][]entry
}

// entry is a key of a section.
type entry struct {
	key    string
	line   int
	values []string
	list   bool
}

// Read reads a file. Its error tells all faults of the file, each with its line; it
// matches [*Error], or the error of reading.
func Read(path string, kinds []Kind) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, text, kinds)
}

// Parse is [Read] for the text of a file; name is its name in errors.
func Parse(name string, text []byte, kinds []Kind) (*File, error) {
	p := parser{file: &File{name: name, sections: make(map[string][]entry)}}
	if len(text) > maxFile {
		p.bad(0, "", "longer than %d bytes", maxFile)
		return nil, errors.Join(p.errs...)
	}
	if root := p.document(text); root != nil {
		p.root(root, kinds)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.file, nil
}

// Sections returns the kinds that the file has settings of.
func (f *File) Sections(kinds []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool {
		_, ok := f.sections[k.Name]
		return !ok
	})
}

// missing returns the error of a file without a section of a kind.
func (f *File) missing(kind Kind) error {
	return &Error{File: f.name, Key: kind.Name, Problem: "no such key, and this process takes its settings from there"}
}

// parser collects the faults of a file.
type parser struct {
	file *File
	errs []error
}

func (p *parser) bad(line int, key, format string, args ...any) {
	p.errs = append(p.errs, &Error{File: p.file.name, Line: line, Key: key, Problem: fmt.Sprintf(format, args...)})
}

// yamlLine matches the place that the library puts before a syntax error.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the mapping of the text; nil, with an error noted, if the text is no
// mapping.
func (p *parser) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		p.bad(0, "", "empty")
		return nil
	}
	if err == nil {
		if err := decoder.Decode(&more); err == nil {
			p.bad(more.Line, "", "a second document")
			return nil
		} else if !errors.Is(err, io.EOF) {
			p.syntax(err)
			return nil
		}
	}
	if err != nil {
		p.syntax(err)
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.bad(root.Line, "", "%s, want keys and values", kindName(root))
		return nil
	}
	return root
}

func (p *parser) syntax(err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	line := 0
	if m != nil && m[1] != "" {
		line, _ = strconv.Atoi(m[1]) // digits; a number that is too long names no line
	}
	p.bad(line, "", "%s", yamlLine.ReplaceAllString(err.Error(), ""))
}

// root reads the file's sections.
func (p *parser) root(root *yaml.Node, kinds []Kind) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	p.mapping(root, "", func(key string, k, v *yaml.Node) {
		i := slices.Index(names, key)
		switch {
		case i < 0:
			p.bad(k.Line, clip(key), "no such key; %s", alternatives(key, "", names))
		case v.Kind != yaml.MappingNode:
			p.bad(v.Line, key, "%s, want keys and values", kindName(v))
		default:
			p.section(kinds[i], v)
		}
	})
}

// section reads the keys of a kind.
func (p *parser) section(kind Kind, node *yaml.Node) {
	names := make([]string, 0, 64)
	for _, f := range kind.Keys() {
		names = append(names, f.Name)
	}
	entries := []entry{}
	p.mapping(node, kind.Name+".", func(key string, k, v *yaml.Node) {
		path := kind.Name + "." + key
		f := kind.key(key)
		if old := kind.Flags.Lookup(key); old != nil {
			if was, ok := old.Value.(former); ok {
				p.bad(k.Line, path, "%v", was.Set(""))
				return
			}
		}
		if f == nil {
			p.bad(k.Line, kind.Name+"."+clip(key), "no such key; %s", alternatives(key, kind.Name, names))
			return
		}
		e := entry{key: key, line: k.Line}
		switch v.Kind {
		case yaml.SequenceNode:
			if _, ok := f.Value.(pflag.SliceValue); !ok {
				p.bad(v.Line, path, "a list, want one %s", typeName(f))
				return
			}
			e.list = true
			for i, item := range v.Content {
				value, ok := p.scalar(item, fmt.Sprintf("%s[%d]", path, i))
				if !ok {
					return
				}
				e.values = append(e.values, value)
			}
		default:
			value, ok := p.scalar(v, path)
			if !ok {
				return
			}
			e.values = []string{value}
		}
		if err := e.set(kind.Flags, f); err != nil {
			p.bad(k.Line, path, "%v", err)
			return
		}
		entries = append(entries, e)
	})
	p.file.sections[kind.Name] = entries
}

// mapping calls each for the keys of a mapping, and notes an error for a key that is no
// name or is repeated.
func (p *parser) mapping(node *yaml.Node, before string, each func(key string, k, v *yaml.Node)) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			p.bad(k.Line, strings.TrimSuffix(before, "."), "a key that is no name")
			continue
		}
		if first, twice := lines[k.Value]; twice {
			p.bad(k.Line, before+clip(k.Value), "stands there twice, first in line %d", first)
			continue
		}
		lines[k.Value] = k.Line
		each(k.Value, k, v)
	}
}

// plainTags are the types that YAML gives to values without a tag.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}

// scalar returns a value as it is written: the flag determines its type.
func (p *parser) scalar(node *yaml.Node, path string) (string, bool) {
	switch {
	case node.Kind == yaml.AliasNode:
		p.bad(node.Line, path, "an alias, which is not supported")
		return "", false
	case node.Kind != yaml.ScalarNode:
		p.bad(node.Line, path, "%s, want a value", kindName(node))
		return "", false
	case node.Tag == "!!null":
		p.bad(node.Line, path, "without a value; leave the key away for the default")
		return "", false
	case !slices.Contains(plainTags, node.Tag):
		p.bad(node.Line, path, "of type %s, want a plain value", clip(node.Tag))
		return "", false
	}
	return node.Value, true
}

// kindName names the kind of a node.
func kindName(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if node.Tag == "!!null" {
		return "nothing"
	}
	return "a value"
}

// set gives a flag the entry's value.
func (e entry) set(flags *pflag.FlagSet, f *pflag.Flag) error {
	if !e.list {
		return set(flags, f, e.values[0])
	}
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return fmt.Errorf("a list, want one %s", typeName(f))
	}
	if err := list.Replace(e.values); err != nil {
		return fmt.Errorf("is no %s: %w", typeName(f), err)
	}
	f.Changed = true
	return nil
}

// clip bounds the part of a file in a message.
func clip(key string) string {
	if len(key) > 64 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' }) {
		return fmt.Sprintf("%.64q", key)
	}
	return key
}

// alternatives suggests the known key that may have been meant, or lists the keys.
func alternatives(key, kind string, known []string) string {
	if near := Near(strings.ReplaceAll(strings.ToLower(key), "_", "-"), known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) > 4 {
		return "samya config show " + kind + " lists all there are"
	}
	return "there are " + strings.Join(known, ", ")
}

// Near returns the known name that a mistyped name is nearest to; empty if none is near.
func Near(name string, known []string) string {
	if len(name) > 64 || len(known) == 0 {
		return ""
	}
	near := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	if d := distance(name, near); d < len(near) && d <= 1+len(near)/4 {
		return near
	}
	return ""
}

// distance counts the letters to insert, delete and change to make a of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
