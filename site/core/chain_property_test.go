package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"pgregory.net/rapid"
)

// woods is a rig with a changing tree of entities.
type woods struct {
	*rig
	rt *rapid.T
	n  int
	// leases maps the granted leases to the sites that granted them.
	leases map[string]core.SiteID
	ids    []string
	// acquires are the acquires without an answer yet, by call.
	acquires map[input.Call]asked
}

// asked is an acquire of one entity. least and most are the fewest and the most tokens that
// it takes, lease is empty unless it asks for a lease.
type asked struct {
	site        core.SiteID
	least, most core.Tokens
	lease       string
}

func (f *woods) id() string {
	f.n++
	return id("r", f.n)
}

func (f *woods) tokens() core.Tokens { return core.Tokens(rapid.IntRange(1, 30).Draw(f.rt, "tokens")) }

func (f *woods) name(what string) string {
	return rapid.SampledFrom([]string{"e0", "e1", "e2", "e3", "e4"}).Draw(f.rt, what)
}

// movedOn sums the tokens moved on each entity itself at a site, from the records of
// requests and leases on the site's disk.
func movedOn(from *stored.Restored) map[uint64]core.Tokens {
	moved := map[uint64]core.Tokens{}
	last := map[attempt.Key]stored.Request{}
	blocks, err := from.AllBlocks()
	if err != nil {
		panic(err) // they are in memory
	}
	for _, b := range blocks {
		for _, q := range b.Records {
			last[q.Key] = q
		}
	}
	for _, q := range last {
		switch {
		case q.State != stored.Ran:
		case q.Kind == stored.AllRequest:
			for _, p := range q.Parts {
				moved[p.Generation] += p.Tokens
			}
		case q.Kind == stored.AcquireRequest, q.Kind == stored.CommitRequest:
			moved[q.Generation] += q.Tokens
		case q.Kind == stored.ReleaseRequest:
			moved[q.Generation] -= q.Tokens
		}
	}
	for _, l := range from.Leases {
		moved[l.Generation] += l.Tokens
	}
	return moved
}

// check asserts at every site: the tokens out of an entity are the tokens moved on the
// entity itself and the tokens out of its children.
func (f *woods) check() {
	f.t.Helper()
	for _, site := range f.names {
		from, err := f.disks[site].Load()
		if err != nil {
			f.rt.Fatal(err)
		}
		nets, generations := map[string]core.Tokens{}, map[uint64]bool{}
		for _, b := range from.Books {
			nets[b.Name] = b.Net
		}
		want := movedOn(&from)
		for _, e := range from.Entities {
			generations[e.Generation] = true
		}
		for _, e := range from.Entities {
			if e.Parent != 0 {
				want[e.Parent] += nets[e.Name]
			}
			if e.Parent != 0 && !generations[e.Parent] {
				f.rt.Fatalf("%s: %q stands below generation %d, which is not there", site, e.Name, e.Parent)
			}
		}
		for _, e := range from.Entities {
			if nets[e.Name] != want[e.Generation] {
				f.rt.Fatalf("%s: %d of %q are out, %d by what was moved on it and by those below", site, nets[e.Name], e.Name, want[e.Generation])
			}
		}
	}
}

// collect takes in the answers to acquires. A refusal for want of tokens names an entity.
func (f *woods) collect() {
	for call, q := range f.acquires {
		a, answered := f.answers[call]
		if !answered {
			continue
		}
		delete(f.acquires, call)
		if a.Code == answer.OK && (a.Tokens < q.least || a.Tokens > q.most) {
			f.rt.Fatalf("%d tokens were granted, asked for were %d to %d", a.Tokens, q.least, q.most)
		}
		switch {
		case a.Code == answer.OK && q.lease != "":
			f.leases[q.lease] = q.site
			f.ids = append(f.ids, q.lease)
		case (a.Code == answer.OutOfTokens || a.Code == answer.QueueFull) && a.Lacking == "":
			f.rt.Fatalf("refused for want of no entity's tokens: %+v", a)
		}
	}
}

func (f *woods) acquire() {
	site := rapid.SampledFrom(f.names).Draw(f.rt, "site")
	call, name, tokens := f.nextCall(), f.name("entity"), f.tokens()
	in := &input.Acquire{
		Call: call, Entity: name, Tokens: tokens, Request: key(f.id()),
		Wait: core.Tick(rapid.SampledFrom([]int{0, 300, 3000}).Draw(f.rt, "wait")),
	}
	q := asked{site: site, least: tokens, most: tokens}
	if rapid.Bool().Draw(f.rt, "least") {
		q.least = core.Tokens(rapid.IntRange(1, int(tokens)).Draw(f.rt, "fewest"))
		in.Least = q.least
	}
	if rapid.IntRange(0, 2).Draw(f.rt, "leased") == 0 {
		q.lease = f.id()
		in.Request = key(q.lease)
		in.Lease = &input.LeaseTerms{ID: q.lease, TTL: core.Tick(rapid.IntRange(1, 3000).Draw(f.rt, "ttl"))}
	}
	f.acquires[call] = q
	f.step(site, in)
	a, answered := f.answers[call]
	if !answered || a.Code != answer.OutOfTokens || in.Wait > 0 {
		return
	}
	if v := f.view(site, a.Lacking); v.Usable != a.Left || v.Waiting == 0 && v.Usable >= q.least {
		f.rt.Fatalf("%+v refused for want of %+v: %+v", in, v, a)
	}
	for up := name; up != a.Lacking; {
		if up = f.view(site, up).Parent; up == "" {
			f.rt.Fatalf("%+v refused for want of tokens of %q, which does not stand above", in, a.Lacking)
		}
	}
}

// all acquires several entities at a site, and now and then the same again at another
// site.
func (f *woods) all() {
	var parts []input.Part
	for range rapid.IntRange(1, 4).Draw(f.rt, "parts") {
		parts = append(parts, part(f.name("part"), f.tokens()))
	}
	first, second := rapid.SampledFrom(f.names).Draw(f.rt, "site"), rapid.SampledFrom(f.names).Draw(f.rt, "second")
	in := input.AcquireAll{Call: f.nextCall(), Parts: parts, Request: key(f.id()), Wait: 300}
	one := in
	f.step(first, &one)
	if first == second || rapid.Bool().Draw(f.rt, "once") {
		return
	}
	in.Call, in.Tries = f.nextCall(), input.Tries{Attempt: attempt.Of(2, 0), Tried: []core.SiteID{first}, NotAfter: f.now.Wall + 9000}
	f.step(second, &in)
}

func (f *woods) release() {
	call, id := f.nextCall(), f.id()
	site := rapid.SampledFrom(f.names).Draw(f.rt, "site")
	f.step(site, &input.Release{Call: call, Entity: f.name("entity"), Tokens: f.tokens(), Request: key(id)})
}

// lease runs a random request on a lease.
func (f *woods) lease() {
	if len(f.ids) == 0 {
		return
	}
	lease := rapid.SampledFrom(f.ids).Draw(f.rt, "lease")
	home, call := f.leases[lease], f.nextCall()
	switch rapid.IntRange(0, 2).Draw(f.rt, "do") {
	case 0:
		f.step(home, &input.CommitLease{Call: call, Lease: key(lease), Tokens: f.tokens(), Request: key(f.id())})
	case 1:
		f.step(home, &input.RenewLease{Call: call, Lease: key(lease), TTL: 2000})
	default:
		site := rapid.SampledFrom(f.names).Draw(f.rt, "site")
		f.step(site, &input.Release{
			Call: call, Entity: f.name("entity"), Tokens: f.tokens(), Request: key(f.id()),
			Lease: &input.LeaseRef{Home: home, Request: key(lease)},
		})
	}
}

func (f *woods) reshape() {
	ch := input.Change{RequestID: f.id(), Name: f.name("entity")}
	switch rapid.IntRange(0, 5).Draw(f.rt, "change") {
	case 0:
		ch.Kind, ch.Subtree = input.DeleteEntity, rapid.Bool().Draw(f.rt, "subtree")
	case 1:
		ch.Kind, ch.Limit = input.SetLimit, core.Tokens(rapid.IntRange(0, 60).Draw(f.rt, "limit"))
	case 2:
		ch.Kind, ch.Limit = input.CreateEntity, 60
		ch.Parent = f.name("parent")
	default:
		ch.Kind = input.MoveEntity
		if rapid.Bool().Draw(f.rt, "below") {
			ch.Parent = f.name("parent")
		}
	}
	f.changeAsync(rapid.SampledFrom(f.names).Draw(f.rt, "site"), ch)
}

// TestTreesAddUp: clients acquire, give back, move and delete at random, and sites go
// down at any time. At every site the tokens out of an entity are the tokens moved on the
// entity itself and the tokens out of its children. In the end no acquire waits and all
// books add up.
func TestTreesAddUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &woods{
			rig: newRig(t, rapid.SampledFrom([]int{1, 3}).Draw(rt, "sites"), nil), rt: rt,
			leases: map[string]core.SiteID{}, acquires: map[input.Call]asked{},
		}
		for i := range 5 {
			name, parent := fmt.Sprint("e", i), ""
			if i > 0 {
				parent = rapid.SampledFrom([]string{"", "e0", fmt.Sprint("e", i-1)}).Draw(rt, "parent")
			}
			f.below(name, parent, core.Tokens(rapid.IntRange(20, 120).Draw(rt, "limit")))
		}
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			switch site := rapid.SampledFrom(f.names).Draw(rt, "at"); rapid.SampledFrom([]string{
				"acquire", "acquire", "acquire", "all", "all", "release", "lease", "lease", "reshape", "advance", "advance", "restart", "cut", "cancel",
			}).Draw(rt, "op") {
			case "acquire":
				f.acquire()
			case "all":
				f.all()
			case "release":
				f.release()
			case "lease":
				f.lease()
			case "reshape":
				f.reshape()
			case "advance":
				f.advance(core.Tick(rapid.SampledFrom([]int{5, 40, 400, 2000}).Draw(rt, "time")))
			case "restart":
				f.restart(site)
			case "cut":
				f.cut[site] = !f.cut[site]
			case "cancel":
				f.step(site, &input.Cancel{Call: input.Call(f.calls)})
			}
			f.collect()
			f.check()
		}
		clear(f.cut)
		f.advance(60_000)
		f.collect()
		f.check()
		for i := range 5 {
			name := fmt.Sprint("e", i)
			if _, err := f.find(f.names[0], name); err != nil {
				continue
			}
			left, offered, net := f.books(name)
			v := f.view(f.names[0], name)
			if v.Waiting != 0 || left+offered+net != v.Limit-v.Surplus {
				rt.Fatalf("%d left, %d offered, %d out of %+v", left, offered, net, v)
			}
		}
	})
}
