package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
)

// samePacked fails unless the packed form of a block is that of its records.
func samePacked(b *stored.Block) error {
	for _, run := range b.Runs {
		if run.First+run.Count > len(b.Records) {
			return fmt.Errorf("run %+v of %d records", run, len(b.Records))
		}
	}
	if got, want := packed.Block(nil, b), packed.Block(nil, &stored.Block{Records: b.Records}); !bytes.Equal(got, want) {
		return fmt.Errorf("%d records in runs %v: packed are %d bytes, of the records %d", len(b.Records), b.Runs, len(got), len(want))
	}
	return nil
}

// twoEntities is a core with two shards and the entities a and b.
func twoEntities(t *testing.T) *sharded {
	t.Helper()
	data := stored.Restored{Catalogue: &stored.Catalogue{Generation: 2}}
	for i, name := range []string{"a", "b"} {
		data.Entities = append(data.Entities, stored.Entity{Name: name, Generation: uint64(i + 1), Initial: 1000, Limit: 1000, Version: 1})
		data.Books = append(data.Books, stored.Books{Name: name, Generation: uint64(i + 1), Left: 1000})
	}
	c, err := New(Config{Self: "a", Members: []SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 1000}, data)
	if err != nil {
		t.Fatal(err)
	}
	l := &sharded{Core: c}
	l.Partition(2, home{})
	return l
}

// TestShardsPackTheirRecords: the records of shards are packed already when they are
// drained, in their place among the records of the core, and once.
func TestShardsPackTheirRecords(t *testing.T) {
	l, rnd := twoEntities(t), rand.New(rand.NewPCG(1, 2))
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	var out Effects
	for round := range byte(3) {
		id := byte(0)
		ask := func() *input.Acquire {
			id++
			return &input.Acquire{Call: int(id), Entity: string('a' + rune(id%2)), Tokens: 1, Request: attempt.Key{round + 1, id}}
		}
		l.Step(now, ask())
		for range 2 {
			l.Resume()
			for range 5 {
				l.hand(rnd, now, ask())
			}
			l.Step(now, ask())
		}
		l.Drain(&out)
		b := &out.Records.Block
		want := []stored.Run{{First: 1, Count: 5}, {First: 7, Count: 5}}
		if len(b.Records) != 13 || len(b.Runs) != len(want) {
			t.Fatalf("%d records in runs %+v", len(b.Records), b.Runs)
		}
		for i, run := range b.Runs {
			if run.First != want[i].First || run.Count != want[i].Count || run.Bytes == 0 {
				t.Errorf("run %d: %+v, want %+v", i, run, want[i])
			}
		}
		if err := samePacked(b); err != nil {
			t.Error(err)
		}
		out.Reset()
	}
	l.Resume()
	for i := range byte(4) {
		l.hand(rnd, now, &input.Acquire{Call: int(i), Entity: "a", Tokens: 1, Request: attempt.Key{9, i}})
	}
	if l.Drain(&out); !out.Records.Block.Whole() {
		t.Errorf("requests of shards alone: runs %+v", out.Records.Block.Runs)
	}
}

// TestHaltOfWhatShardsServed: the packed form of a commit in which a balance broke lacks the
// withheld records.
func TestHaltOfWhatShardsServed(t *testing.T) {
	l, rnd := twoEntities(t), rand.New(rand.NewPCG(1, 2))
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	l.Step(now, input.Wake{})
	l.Resume()
	for i := range byte(10) {
		l.hand(rnd, now, &input.Acquire{Call: int(i), Entity: string('a' + rune(i%2)), Tokens: 1, Request: attempt.Key{1, i}})
	}
	if l.served != 10 {
		t.Fatalf("%d requests served by shards", l.served)
	}
	l.Step(now, input.Wake{})
	l.Overdraw("a")
	var out Effects
	l.Drain(&out)
	b := &out.Records.Block
	if len(b.Records) != 5 {
		t.Errorf("%d records, want those of b alone", len(b.Records))
	}
	if err := samePacked(b); err != nil {
		t.Error(err)
	}
}
