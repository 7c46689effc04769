package rules

import (
	"maps"
	"slices"
)

// MatchSet returns the rule for entries that have no order, as a bucket of Envoy's rate limit
// quota service has; nil for none. It is the rule for a descriptor with exactly these entries,
// in any order. If several orders have a rule, the first counts, where orders are sorted by
// the keys.
func (c *Config) MatchSet(domain string, entries map[string]string) *Match {
	at := c.domains[domain]
	if at == nil || len(entries) == 0 || len(entries) > maxDepth {
		return nil
	}
	rest := make([]Entry, 0, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		rest = append(rest, Entry{key, entries[key]})
	}
	ordered := at.order(nil, rest)
	if ordered == nil {
		return nil
	}
	m := c.match(domain, ordered, nil)
	if m == nil {
		return nil
	}
	if m.Template != "" {
		// Keys have no leases of share. An entity with the name of a key counts in its place.
		m.Template, m.Terms = "", units[m.Unit]
	}
	return m
}

// order appends the rest of the entries in the first order that leads to a rule below n; nil
// for none.
func (n *node) order(before, rest []Entry) []Entry {
	if len(rest) == 0 {
		if n.rule == nil {
			return nil
		}
		return before
	}
	for i, e := range rest {
		next, _ := n.find(e)
		if next == nil {
			continue
		}
		others := slices.Delete(slices.Clone(rest), i, i+1)
		if found := next.order(append(slices.Clip(before), e), others); found != nil {
			return found
		}
	}
	return nil
}
