package core

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkForesight is what an acquire that begins nothing pays for forecasts:
// it is counted in the demand, and whether it is time to ask for tokens is looked
// at, one in a millisecond; where there are more in one, only the first looks.
func BenchmarkForesight(b *testing.B) {
	c, err := New(Config{
		Self: "a", Members: []SiteID{"a", "b", "c", "d", "e"}, Rand: rand.New(rand.NewPCG(1, 2)),
	}, Restored{
		Catalogue: &CatalogueRecord{Generation: 1},
		Entities:  []EntityRecord{{Name: "e", Generation: 1, Initial: MaxTokens, Limit: MaxTokens, Version: 1}},
		Books:     []BooksRecord{{Name: "e", Generation: 1, Left: MaxTokens}},
	})
	if err != nil {
		b.Fatal(err)
	}
	e := c.space.find("e")
	b.ReportAllocs()
	for i := range b.N {
		c.now.Tick = 1 + Tick(i)
		c.demanded(e, 1)
		c.look(e)
	}
	if len(c.out.Events) > 0 {
		b.Fatalf("%+v", c.out.Events)
	}
}
