package core

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// amongOthers is a core among three members, with left tokens left and net out of e.
// Under auto there are five members, so that two are no majority. shards is the number of
// shards, 0 for none.
func amongOthers(t *testing.T, protocol string, shards int, left, net Tokens) *sharded {
	t.Helper()
	members := []SiteID{"a", "b", "c"}
	if protocol == "auto" {
		members = append(members, "d", "e")
	}
	c, err := New(Config{
		Self: "a", Members: members, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 100_000, Skew: 1, Bin: 1000,
		Protocol: protocol,
	}, stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "e", Generation: 1, Initial: 3000, Limit: 3000, Version: 1}},
		Books:     []stored.Books{{Name: "e", Generation: 1, Left: left, Net: net}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &sharded{Core: c}
	if shards > 0 {
		l.Partition(shards, home{})
	}
	return l
}

// wordOf is gossip of b and c about e, each with left tokens left.
func wordOf(left Tokens) []input.Deliver {
	var told []input.Deliver
	for _, from := range []SiteID{"b", "c"} {
		told = append(told, input.Deliver{From: from, Messages: []message.Envelope{{Gossip: &message.Gossip{
			From: from, To: "a", Summaries: []message.Summary{{Entity: "e", Generation: 1, Left: left, Net: 1000 - left, Busy: true}},
		}}}})
	}
	return told
}

// TestShardsTellOfGains: where all have little, a site tells at once that tokens are back,
// also if its shards took them back, and also of a split entity.
func TestShardsTellOfGains(t *testing.T) {
	for _, c := range []struct {
		what   string
		shards int
		split  bool
	}{{"stepped", 0, false}, {"on shards", 2, false}, {"split", 2, true}} {
		l := amongOthers(t, "majority", c.shards, 12, 988)
		now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
		for _, d := range wordOf(2) {
			l.Step(now, d)
		}
		told := func() Tick { return l.space.find("e").views[0].told }
		for end := now.Tick + 3000; told() == 0 && now.Tick < end; {
			now.Tick++
			if at := l.WakeAt(); at != 0 && at <= now.Tick {
				l.Step(now, input.Wake{})
			}
		}
		if told() == 0 {
			t.Fatalf("%s: nothing was told", c.what)
		}
		if c.split && !l.Split("e", true) {
			t.Fatal("not split")
		}
		var out Effects
		l.Drain(&out)
		out.Reset()
		l.Resume()
		now.Tick += gainPause
		l.hand(rand.New(rand.NewPCG(1, 1)), now, &input.Release{Call: 1, Entity: "e", Tokens: 100, Request: attempt.Key{9}})
		l.Drain(&out)
		if served := c.shards > 0; served != (l.served == 1) {
			t.Fatalf("%s: %d requests served on shards", c.what, l.served)
		}
		to := map[SiteID]Tokens{}
		for _, m := range out.Messages {
			if m.Gossip != nil {
				to[m.Gossip.To] = m.Gossip.Summaries[0].Left
			}
		}
		if want := map[SiteID]Tokens{"b": 112, "c": 112}; !reflect.DeepEqual(to, want) {
			t.Errorf("%s: told %v, want %v", c.what, to, want)
		}
	}
}

// TestShardsSendAsSteps hands the same requests and the same gossip to a core and to a
// core with shards, and wants the same messages and events: a request at a shard has the
// same sites told and asked. The sites in reach change meanwhile, so that at times there
// is no majority.
func TestShardsSendAsSteps(t *testing.T) {
	race.OneGoroutine(t)
	messages, served := 0, 0
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		left := Tokens(10 + rnd.IntN(300))
		protocol := []string{"majority", "auto"}[seed%2]
		plain, shards := amongOthers(t, protocol, 0, left, 1000-left), amongOthers(t, protocol, 2, left, 1000-left)
		both := func(now input.Now, in input.Input) {
			plain.Step(now, in)
			shards.Step(now, in)
		}
		now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
		var outs [2]Effects
		for i := range 1500 {
			now.Tick += Tick(rnd.IntN(8))
			now.Wall = 1_700_000_000_000 + int64(now.Tick)
			if rnd.IntN(60) == 0 {
				for _, d := range wordOf(Tokens(rnd.IntN(200))) {
					both(now, d)
				}
			}
			if rnd.IntN(200) == 0 {
				both(now, input.Reachable{Sites: [][]SiteID{nil, {"b"}, {"b", "c"}, {}}[rnd.IntN(4)]})
			}
			lends := rnd.IntN(30) == 0
			for _, l := range []*sharded{plain, shards} {
				// A core with shards may see later that there is no majority.
				e := l.space.find("e")
				l.keepOwn(e)
				if lends && e.noQuorum() {
					// As if it had lent so many.
					*e.seldom.own += 50
				}
			}
			if at := plain.WakeAt(); at != shards.WakeAt() {
				t.Fatalf("seed %d, input %d: woken at %d, with shards at %d", seed, i, at, shards.WakeAt())
			} else if at != 0 && at <= now.Tick {
				both(now, input.Wake{})
			}
			id, tokens := attempt.Key{byte(i), byte(i >> 8), byte(seed)}, Tokens(1+rnd.IntN(12))
			ins := [2]input.Input{}
			acquires := rnd.IntN(2) == 0
			for j := range ins {
				ins[j] = &input.Release{Call: i, Entity: "e", Tokens: tokens, Request: id}
				if acquires {
					ins[j] = &input.Acquire{Call: i, Entity: "e", Tokens: tokens, Request: id}
				}
			}
			plain.Step(now, ins[0])
			shards.Resume()
			shards.hand(rnd, now, ins[1])
			plain.Drain(&outs[0])
			shards.Drain(&outs[1])
			messages += len(outs[0].Messages)
			if err := sameEffects(&outs[0], &outs[1]); err != nil {
				t.Fatalf("seed %d, input %d: %v", seed, i, err)
			}
			if !reflect.DeepEqual(outs[0].Messages, outs[1].Messages) || !reflect.DeepEqual(outs[0].Events, outs[1].Events) {
				t.Fatalf("seed %d, input %d, %T: sent %+v, with shards %+v; events %+v, with shards %+v",
					seed, i, ins[0], outs[0].Messages, outs[1].Messages, outs[0].Events, outs[1].Events)
			}
			outs[0].Reset()
			outs[1].Reset()
		}
		served += shards.served
	}
	if messages < 1000 || served < 10_000 {
		t.Errorf("%d messages, %d requests served on shards", messages, served)
	}
	t.Logf("%d messages, %d requests served on shards", messages, served)
}

// TestShardsGrantNothingThatAnOfferLacks: shards hand out no more than is usable while an
// offer of less than nothing is under way, also of a split entity.
func TestShardsGrantNothingThatAnOfferLacks(t *testing.T) {
	const left, lacking = 100, 40
	for _, split := range []bool{false, true} {
		l := amongOthers(t, "majority", 2, left-lacking, 0)
		e := l.space.find("e")
		if err := e.books.Pledge(-lacking); err != nil {
			t.Fatal(err)
		}
		e.majority = avantan.New(&l.machine, &entityLedger{c: l.rebalancing, e: e}, avantan.State{
			Promised: avantan.Ballot{Number: 1, Site: "b"}, Pledge: &avantan.Contribution{Site: "a", Offered: -lacking},
		})
		now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
		if split && !l.Split("e", true) {
			t.Fatal("not split")
		}
		var granted Tokens
		rnd := rand.New(rand.NewPCG(1, 1))
		for i := range uint64(left) {
			l.Resume()
			l.hand(rnd, now, &input.Acquire{Call: int(i), Entity: "e", Tokens: 1, Request: attempt.Key{1, byte(i)}})
			var out Effects
			l.Drain(&out)
			for _, r := range out.Replies {
				granted += r.Answer.Tokens
			}
		}
		if granted != left-lacking {
			t.Errorf("split %v: %d granted, of %d left where an offer lacks %d", split, granted, left, lacking)
		}
	}
}

// TestNothingIsSpreadWhileAcquiresWait: an entity due to be split stays whole while an
// acquire waits for it. Its tokens are for the waiting acquire, not for requests at a
// shard.
func TestNothingIsSpreadWhileAcquiresWait(t *testing.T) {
	l := amongOthers(t, "majority", 2, 100, 0)
	e := l.space.find("e")
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	l.Step(now, &input.Acquire{Call: 1, Entity: "e", Tokens: 200, Wait: 5000, Request: attempt.Key{1}})
	if e.queue.len() != 1 {
		t.Fatalf("%d acquires wait", e.queue.len())
	}
	if !l.Split("e", true) {
		t.Fatal("not split")
	}
	// A hunt that came back with too little is alone a reason for the entity to stay
	// whole.
	e.rebalance.short = false
	l.Resume()
	for i := range e.split().stripes {
		if left := e.split().stripes[i].Left(); left != 0 {
			t.Errorf("shard %d has %d tokens while an acquire waits", i, left)
		}
	}
}

// TestShardsLeaveQueuesToTheCore: where an acquire waits, the core decides about others.
// A shard would let them overtake an acquire that they have to wait for.
func TestShardsLeaveQueuesToTheCore(t *testing.T) {
	l := amongOthers(t, "majority", 2, 10, 990)
	rnd := rand.New(rand.NewPCG(1, 2))
	now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
	hand := func(tokens Tokens, id byte) {
		l.hand(rnd, now, &input.Acquire{Call: int(id), Entity: "e", Tokens: tokens, Request: attempt.Key{id}, Wait: 20_000})
	}
	l.Step(now, input.Wake{})
	l.Resume()
	if hand(1, 1); l.served != 1 {
		t.Fatalf("%d acquires served by shards before one waits, want 1", l.served)
	}
	hand(50, 2)
	if hand(1, 3); l.served != 1 || l.space.find("e").queue.len() == 0 {
		t.Errorf("%d acquires served by shards, want 1; %d wait", l.served, l.space.find("e").queue.len())
	}
	l.hand(rnd, now, &input.Release{Call: 4, Entity: "e", Tokens: 1, Request: attempt.Key{4}})
	if l.served != 1 {
		t.Error("a shard took a release that an acquire may wait for")
	}
}
