package core

import (
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// BenchmarkForesight measures the cost of forecasts for an acquire that begins nothing,
// an acquire a millisecond. Each is counted in the demand, and the first in a millisecond
// looks whether it is time to ask for tokens.
func BenchmarkForesight(b *testing.B) {
	c, err := New(Config{
		Self: "a", Members: []SiteID{"a", "b", "c", "d", "e"}, Rand: rand.New(rand.NewPCG(1, 2)),
	}, stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "e", Generation: 1, Initial: input.MaxTokens, Limit: input.MaxTokens, Version: 1}},
		Books:     []stored.Books{{Name: "e", Generation: 1, Left: input.MaxTokens}},
	})
	if err != nil {
		b.Fatal(err)
	}
	e := c.space.find("e")
	b.ReportAllocs()
	for i := range b.N {
		c.now.Tick = 1 + Tick(i)
		c.demanded(e, 1)
		c.checkTrigger(e)
	}
	if len(c.out.Events) > 0 {
		b.Fatalf("%+v", c.out.Events)
	}
}
