package core

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/site/core/stored"
)

// TestGossipIsBounded: with more busy entities than a message may tell of, no message
// tells of more, and the messages tell of all in turn. Entities that are no longer busy,
// or gone, are forgotten.
func TestGossipIsBounded(t *testing.T) {
	const entities = 3*512 + 7
	var from stored.Restored
	from.Catalogue = &stored.Catalogue{Generation: entities}
	for i := range entities {
		name := fmt.Sprintf("e%04d", i)
		from.Entities = append(from.Entities, stored.Entity{Name: name, Generation: uint64(i + 1), Initial: 9, Limit: 9, Version: 1})
		from.Books = append(from.Books, stored.Books{Name: name, Generation: uint64(i + 1), Left: 3})
	}
	c, err := New(Config{Self: "a", Members: []SiteID{"a", "b", "c"}, Trigger: "reactive", Rand: rand.New(rand.NewPCG(1, 2))}, from)
	if err != nil {
		t.Fatal(err)
	}
	c.now.Tick = 1
	c.space.ascend("", func(e *entity) bool { c.isBusy(e); return true })
	gone := c.space.find("e0001")
	c.space.remove(gone)
	told := make(map[string]int)
	for c.now.Tick < 6000 {
		at := c.gossip.wake
		if at == 0 {
			t.Fatal("nobody is told any more")
		}
		c.now.Tick = at
		c.tellBusy()
		for _, m := range c.out.Messages {
			if m.Gossip.To != "b" {
				continue
			}
			if n := len(m.Gossip.Summaries); n > 512 {
				t.Fatalf("%d summaries in a message", n)
			}
			for _, s := range m.Gossip.Summaries {
				told[s.Entity]++
			}
		}
		c.out.Messages = nil
	}
	if len(told) != entities-1 || told[gone.name] != 0 || gone.told {
		t.Errorf("%d entities told of, want %d; one that is gone %d times", len(told), entities-1, told[gone.name])
	}
	c.now.Tick += busyFor
	for range 5 {
		c.tellBusy()
	}
	if len(c.gossip.busy) != 0 || c.gossip.wake != 0 || len(c.out.Messages) != 0 {
		t.Errorf("%d are still busy, the next round is at %d", len(c.gossip.busy), c.gossip.wake)
	}
}
