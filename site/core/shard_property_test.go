package core

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// home gives machines places.
type home struct{}

func (home) Came(*Machine) *Handle { return new(Handle) }
func (home) Gone(*Machine)         {}

// sharded is a core with shards. Tests never serve two shards at the same time.
type sharded struct {
	*Core
	served int
}

// hand has a random shard serve an input, or steps the core if no shard can.
func (l *sharded) hand(rnd *rand.Rand, now input.Now, in input.Input) {
	if ms, ok := l.Route(in, nil); ok && len(l.shards.all) > 0 && Servable(in) && l.Serve(rnd.IntN(len(l.shards.all)), now, in, ms) {
		l.served++
		return
	}
	l.Step(now, in)
	l.Resume()
}

// TestShardsAnswerAsSteps hands the same requests to a core and to a core with shards, on
// random shards and with random entities split. Both give the same answers, have the same
// books and remember the same.
func TestShardsAnswerAsSteps(t *testing.T) {
	race.OneGoroutine(t)
	refused, full, late := 0, 0, 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		of := threeLevels(2)
		data := func() stored.Restored {
			d := stored.Restored{Catalogue: &stored.Catalogue{Generation: uint64(len(of.records))}}
			for i, e := range of.records {
				e.Generation, e.Initial, e.Limit, e.Version = uint64(i+1), 200, 200, 1
				d.Entities = append(d.Entities, e)
				d.Books = append(d.Books, stored.Books{Name: e.Name, Generation: e.Generation, Left: 200})
			}
			return d
		}
		core := func(n int) *sharded {
			c, err := New(Config{Self: "a", Members: []SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 1000, Skew: 1, MaxRequests: 900, Bin: 1000}, data())
			if err != nil {
				t.Fatal(err)
			}
			l := &sharded{Core: c}
			if n > 0 {
				l.Partition(n, home{})
			}
			return l
		}
		plain, shards := core(0), core(1+rnd.IntN(3))
		now := input.Now{Tick: 1, Wall: 1_700_000_000_000}
		var outs [2]Effects
		for i := range 4000 {
			now.Tick += Tick(rnd.IntN(3))
			now.Wall = 1_700_000_000_000 + int64(now.Tick)
			if rnd.IntN(40) == 0 {
				name := of.records[rnd.IntN(len(of.records))].Name
				shards.Split(name, rnd.IntN(3) > 0)
				shards.Resume()
			}
			ins := [2]input.Input{}
			kind, names := rnd.IntN(20), [2]string{of.records[rnd.IntN(len(of.records))].Name, of.names[rnd.IntN(len(of.names))]}
			tokens, id := Tokens(1+rnd.IntN(6)), attempt.Key{byte(rnd.IntN(256)), byte(rnd.IntN(40)), byte(seed)}
			acked := uint64(0)
			if ofSessions := seed%2 == 1; ofSessions {
				// Clients repeat requests that they have acknowledged, too.
				sequence := uint64(max(0, i/3-rnd.IntN(50)))
				acked = min(sequence, uint64(max(0, i/3-rnd.IntN(60)-20)))
				id = attempt.OfSession(session.ID{byte(rnd.IntN(2)), byte(seed)}, sequence)
			}
			if rnd.IntN(30) == 0 {
				// About as much as the limits, which releases let be left and more.
				tokens += 196
			}
			least := Tokens(rnd.IntN(3)) * tokens / 2
			for j := range ins {
				switch {
				case kind < 9:
					ins[j] = &input.Acquire{Call: i, Entity: names[0], Tokens: tokens, Least: least, Request: id, Tries: input.Tries{Acked: acked}}
				case kind < 11:
					ins[j] = &input.AcquireAll{Call: i, Parts: []input.Part{{Entity: names[0], Tokens: tokens}, {Entity: names[1], Tokens: 1}}, Request: id, Tries: input.Tries{Acked: acked}}
				case kind < 12:
					ins[j] = &input.Acquire{Call: i, Entity: names[0], Tokens: tokens, Request: id, Tries: input.Tries{NotAfter: now.Wall + 50 - int64(id[0]), Acked: acked}}
				case kind < 13:
					ins[j] = &input.Read{Call: i, Entity: names[0]}
				default:
					ins[j] = &input.Release{Call: i, Entity: names[0], Tokens: tokens, Request: id, Tries: input.Tries{Acked: acked}}
				}
			}
			plain.Step(now, ins[0])
			shards.hand(rnd, now, ins[1])
			if rnd.IntN(8) > 0 {
				continue
			}
			plain.Drain(&outs[0])
			shards.Drain(&outs[1])
			shards.Resume()
			if err := sameEffects(&outs[0], &outs[1]); err != nil {
				t.Fatalf("seed %d, input %d: %v", seed, i, err)
			}
			n := plain.Recount(func(attempt.Key) string { return "" })[""]
			if x, y := plain.HeldAll(), shards.HeldAll(); x != y || seed%2 == 0 && x[0] != n {
				t.Fatalf("seed %d, input %d: counted are %v, by shards %v, there are %d", seed, i, x, y, n)
			}
			for _, org := range []string{"00000", "00001"} {
				if x, y := plain.requests.held.Held(org), shards.requests.held.Held(org); x != y {
					t.Fatalf("seed %d, input %d: %s has %d, by shards %d", seed, i, org, x, y)
				}
			}
			for _, r := range outs[1].Replies {
				switch r.Answer.Code {
				case answer.Overloaded:
					full++
				case answer.Superseded:
					late++
				}
				if r.Answer.Code == answer.ExceedsLimit && r.Answer.Left > r.Answer.Tokens {
					refused++
				}
			}
			outs[0].Reset()
			outs[1].Reset()
		}
		if shards.served < 500 {
			t.Errorf("seed %d: %d requests served by shards", seed, shards.served)
		}
	}
	if full < 100 {
		t.Errorf("%d requests refused as there are too many", full)
	}
	if late < 100 {
		t.Errorf("%d requests refused as their clients have acknowledged them", late)
	}
	if refused < 100 {
		t.Errorf("%d acquires of more than a limit refused where more was left", refused)
	}
}

// sameEffects compares the effects of two cores, in any order.
func sameEffects(a, b *Effects) error {
	answers := func(e *Effects) map[input.Call]answer.Answer {
		m := make(map[input.Call]answer.Answer)
		for _, r := range e.Replies {
			m[r.Call] = r.Answer
		}
		return m
	}
	books := func(e *Effects) map[string]stored.Books {
		m := make(map[string]stored.Books)
		for _, r := range e.Records.Books {
			m[r.Name] = r
		}
		return m
	}
	records := func(e *Effects) map[attempt.Key]stored.Request {
		m := make(map[attempt.Key]stored.Request)
		for _, r := range e.Records.Block.Records {
			m[r.Key] = r
		}
		return m
	}
	if err := samePacked(&b.Records.Block); err != nil {
		return err
	}
	switch x, y := answers(a), answers(b); {
	case !reflect.DeepEqual(x, y):
		return fmt.Errorf("answers %+v, by shards %+v", x, y)
	case !reflect.DeepEqual(books(a), books(b)):
		return fmt.Errorf("books %+v, by shards %+v", books(a), books(b))
	case !reflect.DeepEqual(records(a), records(b)):
		return fmt.Errorf("records %+v, by shards %+v", records(a), records(b))
	case a.Records.Block.Sequence != b.Records.Block.Sequence || a.Records.ForgetBlocks != b.Records.ForgetBlocks || a.Records.Commits != b.Records.Commits:
		return fmt.Errorf("block %d, forget %d, commits %d; by shards %d, %d, %d", a.Records.Block.Sequence, a.Records.ForgetBlocks,
			a.Records.Commits, b.Records.Block.Sequence, b.Records.ForgetBlocks, b.Records.Commits)
	}
	return nil
}
