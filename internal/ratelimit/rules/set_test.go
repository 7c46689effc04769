package rules_test

import (
	"testing"

	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// TestMatchSet: entries without an order have the rule of a descriptor with exactly these
// entries; of several, the first by the order of the keys.
func TestMatchSet(t *testing.T) {
	c, err := rules.Parse(rules.File{Name: "f", Data: []byte(`
domain: d
descriptors:
  - key: zone
    value: eu
    descriptors:
      - key: customer
        rate_limit: {unit: minute, requests_per_unit: 1}
  - key: a
    descriptors:
      - key: b
        rate_limit: {unit: minute, requests_per_unit: 2}
  - key: b
    rate_limit: {unit: minute, requests_per_unit: 4}
    descriptors:
      - key: a
        rate_limit: {unit: minute, requests_per_unit: 3}
`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		domain  string
		entries map[string]string
		limit   int64
		entity  string
	}{
		{"d", map[string]string{"customer": "x", "zone": "eu"}, 1, "ratelimit/d/zone.eu/customer/minute-keys/x"},
		{"d", map[string]string{"b": "1", "a": "2"}, 2, "ratelimit/d/a/b/minute-keys/2/1"},
		{"d", map[string]string{"b": "1"}, 4, "ratelimit/d/b/minute-keys/1"},
		{"d", map[string]string{"customer": "x", "zone": "us"}, 0, ""},
		{"d", map[string]string{"zone": "eu"}, 0, ""},
		{"d", map[string]string{"b": "1", "c": "2"}, 0, ""},
		{"d", nil, 0, ""},
		{"e", map[string]string{"b": "1"}, 0, ""},
	} {
		m := c.MatchSet(tc.domain, tc.entries)
		switch {
		case m == nil && tc.limit != 0:
			t.Errorf("%v has no rule", tc.entries)
		case m != nil && (m.Limit != tc.limit || m.Entity != tc.entity):
			t.Errorf("%v: %d, %s", tc.entries, m.Limit, m.Entity)
		}
	}
}
