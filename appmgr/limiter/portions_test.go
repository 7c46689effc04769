package limiter

import (
	"testing"

	"github.com/samya-db/samya/internal/apierr"
)

// TestPortions: a refused caller is told to come back. A request that has ended no longer
// counts.
func TestPortions(t *testing.T) {
	p := NewPortions(16)
	greedy, err := p.Begin("greedy")
	for range 13 {
		if err != nil {
			t.Fatal(err)
		}
		greedy, err = p.Begin("greedy")
	}
	if _, err = p.Begin("greedy"); apierr.ReasonOf(err) != apierr.Overloaded {
		t.Errorf("the fullest caller is answered %v", err)
	}
	another, err := p.Begin("another")
	if err != nil {
		t.Errorf("another caller: %v", err)
	}
	p.End(another)
	for range 14 {
		p.End(greedy)
	}
	if p.of.All() != 0 || p.of.Holders() != 0 {
		t.Errorf("%d of %d callers stay", p.of.All(), p.of.Holders())
	}
}
