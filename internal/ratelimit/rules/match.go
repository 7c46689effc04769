package rules

import (
	"strings"

	"github.com/samya-db/samya/internal/rates"
)

// Entry is a key and a value of a request's descriptor.
type Entry struct{ Key, Value string }

// Override is a limit that a request brings along.
type Override struct {
	Limit int64
	Unit  Unit
}

// Match is the rule for a descriptor.
type Match struct {
	// Entity is the name of the rate quota. It depends on the domain, the entries and the
	// unit. The limit is a part of it only where the request brings its own.
	Entity string
	// Template is the name of the template that Entity is a key of; empty if Entity is an
	// entity. The keys of a template are the values of entries that the rule leaves open.
	Template string
	// Limit is how many requests a window has.
	Limit int64
	Unit  Unit
	Terms rates.Terms
	// Unlimited: the rule has no limit, and nothing is counted.
	Unlimited bool
	// Shadow: the rule counts and refuses nothing.
	Shadow bool
	// Quota: the request passes while any rule with Quota has tokens left.
	Quota bool
	// Name is the name of the limit, and Replaces the names of the limits that do not count
	// in a request with this limit.
	Name     string
	Replaces []string
	// Metric names the rule in metrics. It holds values of the request only where the files
	// want this.
	Metric string
	// Metadata is told with the answer.
	Metadata map[string]any
}

// Descriptor is a descriptor of a request.
type Descriptor struct {
	Entries []Entry
	// Override is the limit to apply; nil: the limit of the rule.
	Override *Override
}

// Match returns the rule for each descriptor of a request: nil where there is none, or
// where another descriptor's rule replaces it.
func (c *Config) Match(domain string, descriptors ...Descriptor) []*Match {
	all := make([]*Match, len(descriptors))
	var replaced map[string]bool
	for i, d := range descriptors {
		m := c.match(domain, d.Entries, d.Override)
		if m == nil {
			continue
		}
		all[i] = m
		for _, name := range m.Replaces {
			if replaced == nil {
				replaced = make(map[string]bool)
			}
			replaced[name] = true
		}
	}
	for i, m := range all {
		if m != nil && !m.Unlimited && m.Name != "" && replaced[m.Name] {
			all[i] = nil
		}
	}
	return all
}

// match finds the rule for a descriptor; nil if there is none. At each depth an entry
// matches the descriptor of its key and value, else the first wildcards that fit, else the
// descriptor of its key alone. A rule is as deep as the descriptor has entries. In a domain
// that has rules, an override takes the place of any rule.
func (c *Config) match(domain string, entries []Entry, override *Override) *Match {
	at := c.domains[domain]
	if at == nil || len(entries) == 0 {
		return nil
	}
	if override != nil {
		return overridden(domain, entries, override)
	}
	// Most descriptors have few entries, and need no memory of the heap.
	var ofCounted, ofRule [few]Entry
	var ofValues, ofMetric [few]string
	counted, metric := append(ofCounted[:0], entries...), append(ofMetric[:0], make([]string, len(entries))...)
	open := opened{rule: ofRule[:0], values: ofValues[:0]}
	for i, e := range entries {
		next, how := at.find(e)
		if next == nil {
			return nil
		}
		pattern := ""
		if how == byWildcard {
			var ok bool
			pattern, ok = strings.CutPrefix(next.key, e.Key+"_")
			open.bare = open.bare || !ok
			if next.share {
				counted[i].Value = pattern
			}
		}
		open.add(counted[i], how != byValue && !next.share, pattern)
		metric[i] = metricOf(next, how, e, pattern)
		at = next
	}
	r := at.rule
	if r == nil {
		return nil
	}
	if r.perMetric {
		for i, e := range counted {
			metric[i] = composite(e)
		}
	}
	m := &Match{
		Limit: r.limit, Unit: r.unit, Terms: units[r.unit], Unlimited: r.unlimited, Shadow: r.shadow, Quota: r.quota,
		Name: r.name, Replaces: r.replaces, Metric: joined(domain, metric), Metadata: r.metadata,
	}
	if m.Unlimited {
		return m
	}
	if keys, ok := keysOf[r.unit]; ok && open.templates() {
		m.Terms = keys.terms
		m.Template, m.Entity = open.names(domain, keys.unit)
	} else {
		m.Entity = entity(domain, counted, string(r.unit))
	}
	return m
}

// joined is the name of a rule in metrics.
func joined(domain string, entries []string) string {
	if len(entries) == 1 {
		return domain + "." + entries[0]
	}
	return domain + "." + strings.Join(entries, ".")
}

// few is a number of entries of most descriptors.
const few = 4

// opened are the entries of a descriptor, as a rule has them.
type opened struct {
	// rule are the entries as the rule has them, values those that it leaves open.
	rule   []Entry
	values []string
	// bare: the rule leaves a key open, or an entry that it does not leave open has no value.
	bare bool
}

// add adds an entry; open says that the rule leaves its value open, but for a pattern.
func (o *opened) add(e Entry, open bool, pattern string) {
	if open {
		o.values = append(o.values, e.Value)
		e.Value = pattern
	} else if e.Value == "" {
		o.bare = true
	}
	o.rule = append(o.rule, e)
}

// templates reports whether the rule has a template.
func (o *opened) templates() bool { return len(o.values) > 0 && !o.bare }

// names are the names of the rule's template and of the descriptor's key. The unit is that
// of keys.
func (o *opened) names(domain, unit string) (template, name string) {
	template = entity(domain, o.rule, unit)
	return template, key(template, o.values)
}

// overridden is the rule of an override.
func overridden(domain string, entries []Entry, o *Override) *Match {
	if !o.Unit.known() {
		return nil
	}
	metric := make([]string, len(entries))
	for i, e := range entries {
		metric[i] = composite(e)
	}
	return &Match{
		Entity: entity(domain, entries, string(o.Unit)+"-"+decimal(o.Limit)), Limit: o.Limit, Unit: o.Unit, Terms: units[o.Unit],
		Metric: joined(domain, metric),
	}
}

// how says how an entry matched a descriptor.
type how int

const (
	byValue how = iota
	byWildcard
	byKey
)

// find returns the descriptor below n that an entry matches; nil for none.
func (n *node) find(e Entry) (*node, how) {
	if len(n.below) == 0 {
		return nil, 0
	}
	var memory [128]byte
	whole := append(append(append(memory[:0], e.Key...), '_'), e.Value...)
	if d := n.below[string(whole)]; d != nil {
		return d, byValue
	}
	if len(n.wild) > 0 {
		text := string(whole)
		for _, d := range n.wild {
			if fits(d.parts, text) {
				return d, byWildcard
			}
		}
	}
	return n.below[e.Key], byKey
}

// fits reports whether a text is parts with any text between them. There are at least
// two parts.
func fits(parts []string, text string) bool {
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, parts[last]); !ok {
		return false
	}
	for _, part := range parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return true
}

// metricOf names an entry in metrics.
func metricOf(d *node, how how, e Entry, pattern string) string {
	switch {
	case how == byWildcard && (d.share || !d.inMetric):
		return composite(Entry{e.Key, pattern})
	case how == byKey && !d.inMetric:
		return e.Key
	}
	return composite(e)
}

// composite is the composite key of an entry.
func composite(e Entry) string {
	if e.Value == "" {
		return e.Key
	}
	return e.Key + "_" + e.Value
}
