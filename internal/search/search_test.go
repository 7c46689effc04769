package search

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// counters count up to 3 each, in any order.
type counters struct {
	n   [2]int
	bad [2]int
}

func (c *counters) Next(do func(what any, happen func(*counters))) {
	for i := range c.n {
		if c.n[i] < 3 {
			do(Line(func() string { return fmt.Sprintf("count %d", i) }), func(c *counters) { c.n[i]++ })
		}
	}
}

func (c *counters) Clone() *counters { return new(*c) }

var errBad = errors.New("bad")

func (c *counters) Check() error {
	if c.n == c.bad {
		return errBad
	}
	return nil
}

func (c *counters) Fingerprint() string { return fmt.Sprint(c.n) }

// TestAll: each state is visited once, and whatever is bad is found, with the way to it.
func TestAll(t *testing.T) {
	visits := map[string]int{}
	states, err := All(&counters{bad: [2]int{9, 9}}, func(c *counters) error {
		visits[c.Fingerprint()]++
		return nil
	})
	if err != nil || states != 16 || len(visits) != 16 {
		t.Errorf("%d states, %d visited: %v", states, len(visits), err)
	}
	for state, n := range visits {
		if n != 1 {
			t.Errorf("%s is visited %d times", state, n)
		}
	}
	_, err = All(&counters{bad: [2]int{0, 2}}, func(*counters) error { return nil })
	if !errors.Is(err, errBad) || !strings.Contains(err.Error(), "count 1\ncount 1\n") {
		t.Errorf("a bad state: %v", err)
	}
	_, err = All(&counters{bad: [2]int{9, 9}}, func(c *counters) error {
		if c.n == [2]int{3, 3} {
			return errBad
		}
		return nil
	})
	if !errors.Is(err, errBad) || strings.Count(err.Error(), "count") != 6 {
		t.Errorf("a bad visit: %v", err)
	}
}

// TestSet: the order of a list does not matter, and its length does.
func TestSet(t *testing.T) {
	key := func(list ...string) string {
		return string(Set([]byte("-"), list, func(s *string, key []byte) []byte { return append(append(key, *s...), ';') }))
	}
	if key("a", "b") != key("b", "a") || key("a", "b") == key("a") || key("a", "b") == key("a", "c") || key()[0] != '-' {
		t.Errorf("%q, %q, %q", key("a", "b"), key("b", "a"), key("a"))
	}
}
