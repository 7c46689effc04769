package core

import (
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// TestShardsServeNoRates: requests for rate quotas are for the core, which looks at the
// window first. Their escrow is not split.
func TestShardsServeNoRates(t *testing.T) {
	c, err := New(Config{Self: "a", Members: []SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 1000, Skew: 1, Bin: 1000}, stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 2},
		Entities: []stored.Entity{{
			Name: "llm", Generation: 1, Initial: 100, Limit: 100, Version: 1,
			Rate: stored.Rate{Terms: rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Second}, Window: 1},
		}, {Name: "vm", Generation: 2, Initial: 100, Limit: 100, Version: 1}},
		Books: []stored.Books{{Name: "llm", Generation: 1, Left: 100}, {Name: "vm", Generation: 2, Left: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Partition(2, home{})
	c.Step(input.Now{Tick: 1, Wall: 5000}, input.Wake{})
	c.Resume()
	if c.Split("llm", true) {
		t.Error("the escrow of a rate quota is split")
	}
	c.Resume()
	now := input.Now{Tick: 2, Wall: 5001}
	for entity, serves := range map[string]bool{"llm": false, "vm": true} {
		for name, in := range map[string]input.Input{
			"acquire": &input.Acquire{Call: 1, Entity: entity, Tokens: 1, Request: attempt.KeyOf("one " + entity)},
			"all":     &input.AcquireAll{Call: 2, Parts: []input.Part{{Entity: entity, Tokens: 1}}, Request: attempt.KeyOf("all " + entity)},
		} {
			ms, _ := c.Route(in, nil)
			if got := c.Serve(0, now, in, ms); got != serves {
				t.Errorf("%s of %s: a shard serves it: %t", name, entity, got)
			}
		}
	}
}
