package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config is the rules of all domains. It never changes once made.
type Config struct {
	domains map[string]*node
	count   int
}

// node is a descriptor of a file, at a depth.
type node struct {
	// key is the composite key: the key, and after an underscore the value if any.
	key   string
	place place
	// below are the nested descriptors, by their composite keys.
	below map[string]*node
	// wild are the nested descriptors with a '*' in their composite keys, in the order of
	// the files.
	wild []*node
	// parts are the composite key between its wildcards; nil without wildcards.
	parts []string
	// rule is the limit; nil for none.
	rule *rule
	// share: all values that match the wildcards count together.
	share bool
	// inMetric: the value of the request is a part of the metric's name.
	inMetric bool
}

// rule is the part of a rule that does not depend on the request.
type rule struct {
	unit                                Unit
	limit                               int64
	unlimited, shadow, quota, perMetric bool
	name                                string
	replaces                            []string
	metadata                            map[string]any
}

// File is a configuration file.
type File struct {
	// Name is told in faults.
	Name string
	Data []byte
}

// place is a place in a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// fault is a fault in a file.
type fault struct {
	place
	// field is the path to the field; empty for the whole file.
	field   string
	problem string
}

// Error returns "file:line: field: problem".
func (f *fault) Error() string {
	if f.field == "" {
		return f.String() + ": " + f.problem
	}
	return f.String() + ": " + f.field + ": " + f.problem
}

// The bounds of a configuration.
const (
	// maxFaults bounds the faults that are told.
	maxFaults = 20
	// maxRules bounds the descriptors of all files.
	maxRules = 100_000
	// maxDepth bounds the nesting of descriptors.
	maxDepth = 16
	// maxText bounds a key, a value and a name, in bytes.
	maxText = 1024
)

// Parse reads all files of a configuration. Files may share a domain, but no composite
// key at the same place. The error names each fault with its file, line and field.
func Parse(files ...File) (*Config, error) {
	p := &parser{config: &Config{domains: make(map[string]*node)}}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) }) {
		p.file(f)
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return p.config, nil
}

// Domains returns the names of the domains, sorted.
func (c *Config) Domains() []string { return slices.Sorted(maps.Keys(c.domains)) }

// Len returns the number of descriptors in all files.
func (c *Config) Len() int { return c.count }

// add puts a descriptor below n, or returns the descriptor that has its composite key.
func (n *node) add(d *node) (taken *node) {
	if taken = n.below[d.key]; taken != nil {
		return taken
	}
	if n.below == nil {
		n.below = make(map[string]*node)
	}
	n.below[d.key] = d
	if strings.Contains(d.key, "*") {
		d.parts = strings.Split(d.key, "*")
		n.wild = append(n.wild, d)
	}
	return nil
}
