package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readers read the fields of a mapping, by their keys.
type readers map[string]func(n *yaml.Node, field string)

// mapping reads a mapping. All keys must have readers. It reports whether n is a
// mapping. Merge keys bring in the fields of other mappings.
func (p *parser) mapping(n *yaml.Node, field string, known readers) bool {
	given := make(map[string]*yaml.Node)
	return p.merge(resolve(n), field, known, given, 0)
}

// merge is mapping for the fields that are not given yet.
func (p *parser) merge(n *yaml.Node, field string, known readers, given map[string]*yaml.Node, depth int) bool {
	switch {
	case n.Kind != yaml.MappingNode:
		p.fault(n, field, "must be a mapping of fields")
		return false
	case depth > maxDepth:
		p.fault(n, field, "merged from more than %d mappings", maxDepth)
		return false
	}
	own := make(map[string]bool)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		read := known[key.Value]
		path := strings.TrimPrefix(field+"."+clip(key.Value), ".")
		switch {
		case key.Kind != yaml.ScalarNode || read == nil:
			p.fault(key, path, "unknown; the fields here are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		case own[key.Value]:
			p.fault(key, path, "given twice")
			continue
		}
		own[key.Value] = true
		if given[key.Value] == nil {
			given[key.Value] = value
			read(value, path)
		}
	}
	for _, m := range merged {
		from := []*yaml.Node{m}
		if r := resolve(m); r.Kind == yaml.SequenceNode {
			from = r.Content
		}
		for _, one := range from {
			if !p.merge(resolve(one), field, known, given, depth+1) {
				return false
			}
		}
	}
	return true
}

// resolve follows an alias; nil stays nil.
func resolve(n *yaml.Node) *yaml.Node {
	for range maxDepth {
		if n == nil || n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// isNull reports whether a node is null or empty.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// scalar returns a node's scalar; nil, with a fault, for another kind.
func (p *parser) scalar(n *yaml.Node, field, wanted string) *yaml.Node {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode {
		p.fault(n, field, "must be %s", wanted)
		return nil
	}
	return n
}

// text reads a text. A number or another scalar is the text that stands in the file.
func (p *parser) text(into *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = p.scalar(n, field, "a text")
		switch {
		case n == nil || isNull(n):
		case len(n.Value) > maxText:
			p.fault(n, field, "%d bytes, at most %d", len(n.Value), maxText)
		case !utf8.ValidString(n.Value):
			p.fault(n, field, "is not UTF-8")
		default:
			*into = n.Value
		}
	}
}

// flag reads true or false.
func (p *parser) flag(into *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = p.scalar(n, field, "true or false")
		if n == nil || isNull(n) {
			return
		}
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || n.Decode(into) != nil {
			p.fault(n, field, "%q, must be true or false", clip(n.Value))
		}
	}
}

// maxLimit bounds a limit: the API of Envoy counts in 32 bits.
const maxLimit = 1<<32 - 1

// count reads a number of requests.
func (p *parser) count(into *int64) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = p.scalar(n, field, "a whole number")
		if n == nil || isNull(n) {
			return
		}
		var count int64
		if n.Tag != "!!int" || n.Decode(&count) != nil || count < 0 || count > maxLimit {
			p.fault(n, field, "%q, must be a whole number, at least 0 and at most %d", clip(n.Value), int64(maxLimit))
			return
		}
		*into = count
	}
}

// replaces reads the names of the limits that a limit replaces.
func (p *parser) replaces(into *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = resolve(n)
		if isNull(n) {
			return
		}
		if n.Kind != yaml.SequenceNode {
			p.fault(n, field, "must be a list of names")
			return
		}
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", field, i)
			var name string
			if !p.mapping(item, path, readers{"name": p.text(&name)}) {
				continue
			}
			if name == "" {
				p.fault(item, path+".name", "missing")
				continue
			}
			*into = append(*into, name)
		}
	}
}

// metadata reads a mapping of anything.
func (p *parser) metadata(into *map[string]any) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		n = resolve(n)
		if isNull(n) {
			return
		}
		if n.Kind != yaml.MappingNode {
			p.fault(n, field, "must be a mapping")
			return
		}
		var m map[string]any
		if err := n.Decode(&m); err != nil {
			_, problem := syntax(err)
			p.fault(n, field, "%s", problem)
			return
		}
		if !plain(m) {
			p.fault(n, field, "must be of texts, numbers, true, false, lists and mappings by text")
			return
		}
		*into = m
	}
}

// plain reports whether a value can be told in JSON.
func plain(v any) bool {
	switch v := v.(type) {
	case nil, bool, int, int64, uint64, float64, string:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !plain(e) })
	case map[string]any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return true
	}
	return false
}
