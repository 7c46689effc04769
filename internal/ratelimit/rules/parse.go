package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parser reads files into a configuration, and collects faults.
type parser struct {
	config *Config
	faults []error
	// name is the file being read.
	name string
	// full: there are too many descriptors, and no more are read.
	full bool
}

// fault notes a fault, or drops it if there are many.
func (p *parser) fault(n *yaml.Node, field, format string, args ...any) {
	line := 1
	if n != nil {
		line = max(1, n.Line)
	}
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, &fault{place{p.name, line}, field, fmt.Sprintf(format, args...)})
	}
}

// file reads a file.
func (p *parser) file(f File) {
	p.name = f.Name
	d := yaml.NewDecoder(bytes.NewReader(f.Data))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.fault(nil, "domain", "missing")
		return
	case err != nil:
		line, problem := syntax(err)
		p.fault(&yaml.Node{Line: line}, "", "%s", problem)
		return
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.fault(nil, "", "more than one document")
		return
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if isNull(root) {
		p.fault(root, "domain", "missing")
		return
	}
	var domain string
	var descriptors *yaml.Node
	if !p.mapping(root, "", readers{
		"domain":      p.text(&domain),
		"descriptors": func(n *yaml.Node, _ string) { descriptors = n },
	}) {
		return
	}
	if domain == "" {
		p.fault(root, "domain", "missing")
		return
	}
	top := p.config.domains[domain]
	if top == nil {
		top = &node{}
		p.config.domains[domain] = top
	}
	p.descriptors(top, descriptors, "descriptors", 1)
}

// syntax splits the line off an error of the YAML library.
func syntax(err error) (line int, problem string) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		if number, rest, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return n, rest
			}
		}
	}
	return 1, problem
}

// descriptors reads a list of descriptors into the node above them.
func (p *parser) descriptors(above *node, list *yaml.Node, field string, depth int) {
	list = resolve(list)
	switch {
	case list == nil || isNull(list):
		return
	case list.Kind != yaml.SequenceNode:
		p.fault(list, field, "must be a list of descriptors")
		return
	case depth > maxDepth:
		p.fault(list, field, "nested deeper than %d", maxDepth)
		return
	}
	for i, item := range list.Content {
		if p.full || len(p.faults) >= maxFaults {
			return
		}
		p.descriptor(above, item, fmt.Sprintf("%s[%d]", field, i), depth)
	}
}

// descriptor reads a descriptor and its nested descriptors.
func (p *parser) descriptor(above *node, n *yaml.Node, field string, depth int) {
	if p.config.count++; p.config.count > maxRules {
		if !p.full {
			p.fault(n, field, "more than %d descriptors in all", maxRules)
		}
		p.full = true
		return
	}
	d := &node{place: place{p.name, n.Line}}
	var key, value string
	var limit, below *yaml.Node
	r := &rule{}
	if !p.mapping(n, field, readers{
		"key":             p.text(&key),
		"value":           p.text(&value),
		"rate_limit":      func(n *yaml.Node, _ string) { limit = n },
		"descriptors":     func(n *yaml.Node, _ string) { below = n },
		"shadow_mode":     p.flag(&r.shadow),
		"quota_mode":      p.flag(&r.quota),
		"detailed_metric": p.flag(&r.perMetric),
		"value_to_metric": p.flag(&d.inMetric),
		"share_threshold": p.flag(&d.share),
		"metadata":        p.metadata(&r.metadata),
	}) {
		return
	}
	if key == "" {
		p.fault(n, field+".key", "missing")
		return
	}
	d.key = key
	if value != "" {
		d.key += "_" + value
	}
	if d.share && !strings.Contains(d.key, "*") {
		p.fault(n, field+".share_threshold", "is for values with a '*'; the value is %q", value)
	}
	if limit = resolve(limit); limit != nil && !isNull(limit) && p.limit(limit, field+".rate_limit", r) {
		d.rule = r
	}
	if taken := above.add(d); taken != nil {
		p.fault(n, field, "%q is at %s already", d.key, taken.place)
		return
	}
	p.descriptors(d, below, field+".descriptors", depth+1)
}

// limit reads a rate_limit into r, and reports whether it was read.
func (p *parser) limit(n *yaml.Node, field string, r *rule) bool {
	var unit string
	before := len(p.faults)
	if !p.mapping(n, field, readers{
		"unit":              p.text(&unit),
		"requests_per_unit": p.count(&r.limit),
		"unlimited":         p.flag(&r.unlimited),
		"name":              p.text(&r.name),
		"replaces":          p.replaces(&r.replaces),
	}) {
		return false
	}
	r.unit = Unit(strings.ToLower(unit))
	switch {
	case r.unlimited && r.unit.known():
		p.fault(n, field+".unit", "must not be set with unlimited")
	case !r.unlimited && unit == "":
		p.fault(n, field+".unit", "missing")
	case !r.unlimited && !r.unit.known():
		p.fault(n, field+".unit", "%q, must be second, minute, hour, day, week, month or year", clip(unit))
	}
	for i, name := range r.replaces {
		if name == r.name {
			p.fault(n, fmt.Sprintf("%s.replaces[%d].name", field, i), "names the limit itself")
		}
	}
	return len(p.faults) == before
}

// clip bounds a text of a file in a fault.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
