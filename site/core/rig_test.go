package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/sim"
	"github.com/samya-db/samya/site/core"
)

// rig is a cluster whose messages take 10 ms, whose disks take no time, and
// whose clock moves when it is told to.
type rig struct {
	t     *testing.T
	names []core.SiteID
	tweak func(*core.Config)
	cores map[core.SiteID]*core.Core
	disks map[core.SiteID]*sim.Memory
	// lives counts the starts of each.
	lives map[core.SiteID]uint64
	// cut are the sites that no message comes from or goes to.
	cut map[core.SiteID]bool
	now core.Now
	// base is the wall time from which attempts count.
	base int64
	net  []sent
	sent []core.Envelope
	// answers by call; calls are numbers or strings.
	answers map[core.Call]core.Answer
	events  []core.Event
	calls   int
}

type sent struct {
	at core.Tick
	e  core.Envelope
}

const flight = 10

// newRig starts a cluster of n sites, each with the default configuration as
// changed by tweak, if any.
func newRig(t *testing.T, n int, tweak func(*core.Config)) *rig {
	t.Helper()
	r := &rig{
		t: t, tweak: tweak, cores: make(map[core.SiteID]*core.Core), disks: make(map[core.SiteID]*sim.Memory),
		cut: make(map[core.SiteID]bool), lives: make(map[core.SiteID]uint64), now: core.Now{Tick: 1, Wall: 1_700_000_000_000},
		answers: make(map[core.Call]core.Answer),
	}
	for i := range n {
		r.names = append(r.names, core.SiteID(rune('a'+i)))
	}
	for i, name := range r.names {
		r.disks[name] = sim.NewMemory(core.Incarnation(i + 1))
		r.restart(name)
	}
	return r
}

func (r *rig) restart(site core.SiteID) {
	r.t.Helper()
	cfg := core.Config{Self: site, Members: r.names, Rand: rand.New(rand.NewPCG(1+r.lives[site], uint64(site[0])))}
	r.lives[site]++
	if r.tweak != nil {
		r.tweak(&cfg)
	}
	restored, err := r.disks[site].Load()
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := core.New(cfg, restored)
	if err != nil {
		r.t.Fatalf("starting %s: %v", site, err)
	}
	r.cores[site] = c
}

// step feeds a site one input and carries out what follows.
func (r *rig) step(site core.SiteID, in core.Input) {
	r.cores[site].Step(r.now, in)
	r.drain(site)
}

func (r *rig) drain(site core.SiteID) {
	var out core.Effects
	r.cores[site].Drain(&out)
	if err := r.disks[site].Commit(&out.Records); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range out.Messages {
		r.sent = append(r.sent, e)
		if !r.cut[site] && !r.cut[e.To()] {
			r.net = append(r.net, sent{r.now.Tick + flight, e})
		}
	}
	for _, a := range out.Replies {
		if _, twice := r.answers[a.Call]; twice {
			r.t.Errorf("call %v is answered twice", a.Call)
		}
		r.answers[a.Call] = a.Answer
	}
	r.events = append(r.events, out.Events...)
}

// advance lets a time pass, and all that happens in it.
func (r *rig) advance(d core.Tick) {
	r.t.Helper()
	for end := r.now.Tick + d; ; {
		next := end
		if len(r.net) > 0 {
			next = min(next, r.net[0].at)
		}
		for _, name := range r.names {
			if at := r.cores[name].WakeAt(); at != 0 {
				next = min(next, max(at, r.now.Tick))
			}
		}
		r.now.Wall += int64(next - r.now.Tick)
		r.now.Tick = next
		idle := true
		for len(r.net) > 0 && r.net[0].at <= next {
			e := r.net[0].e
			r.net = r.net[1:]
			idle = false
			if to := e.To(); !r.cut[to] && !r.cut[e.From()] {
				r.step(to, core.Deliver{From: e.From(), Messages: []core.Envelope{e}})
			}
		}
		for _, name := range r.names {
			if at := r.cores[name].WakeAt(); at != 0 && at <= next {
				idle = false
				r.step(name, core.Wake{})
				if at := r.cores[name].WakeAt(); at != 0 && at <= next {
					r.t.Fatalf("%s wants to be woken at %d again", name, at)
				}
			}
		}
		if idle && next == end {
			return
		}
	}
}

func (r *rig) nextCall() int {
	r.calls++
	return r.calls
}

func key(id string) core.RequestKey { return core.KeyOf(id) }

// answer returns the answer to a call, which must have come.
func (r *rig) answer(call core.Call) core.Answer {
	r.t.Helper()
	a, ok := r.answers[call]
	if !ok {
		r.t.Fatalf("call %v has no answer", call)
	}
	return a
}

func (r *rig) unanswered(call core.Call) {
	r.t.Helper()
	if a, ok := r.answers[call]; ok {
		r.t.Fatalf("call %v is answered: %+v", call, a)
	}
}

// acquireAsync asks without waiting for the answer.
func (r *rig) acquireAsync(site core.SiteID, entity string, tokens core.Tokens, id string, wait core.Tick) core.Call {
	call := r.nextCall()
	r.step(site, &core.Acquire{Call: call, Entity: entity, Tokens: tokens, Request: key(id), Wait: wait})
	return call
}

func (r *rig) acquire(site core.SiteID, entity string, tokens core.Tokens, id string) core.Answer {
	r.t.Helper()
	return r.answer(r.acquireAsync(site, entity, tokens, id, 0))
}

func (r *rig) release(site core.SiteID, entity string, tokens core.Tokens, id string) core.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &core.Release{Call: call, Entity: entity, Tokens: tokens, Request: key(id)})
	return r.answer(call)
}

func (r *rig) changeAsync(site core.SiteID, ch core.Change) core.Call {
	call := r.nextCall()
	ch.Call = call
	if ch.Wait == 0 {
		ch.Wait = 5000
	}
	r.step(site, &ch)
	return call
}

// change asks for a change and waits until it is answered and known everywhere.
func (r *rig) change(site core.SiteID, kind core.ChangeKind, name string, limit core.Tokens, id string) core.Answer {
	r.t.Helper()
	call := r.changeAsync(site, core.Change{Kind: kind, Name: name, Limit: limit, RequestID: id})
	r.advance(2000)
	return r.answer(call)
}

func (r *rig) create(name string, limit core.Tokens) {
	r.t.Helper()
	if a := r.change(r.names[0], core.CreateEntity, name, limit, "create "+name); a.Code != core.OK {
		r.t.Fatalf("creating %q: %+v", name, a)
	}
}

func (r *rig) view(site core.SiteID, entity string) core.View {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &core.Read{Call: call, Entity: entity})
	a := r.answer(call)
	if a.Code != core.OK {
		r.t.Fatalf("reading %q at %s: %v", entity, site, a.Code)
	}
	return a.View
}

// books adds up what all sites have of an entity.
func (r *rig) books(entity string) (left, offered, net core.Tokens) {
	r.t.Helper()
	for _, name := range r.names {
		v := r.view(name, entity)
		left, offered, net = left+v.Left, offered+v.Offered, net+v.Net
	}
	return left, offered, net
}

func (r *rig) wantCode(got core.Answer, want core.Code) {
	r.t.Helper()
	if got.Code != want {
		r.t.Errorf("got %v (%+v), want %v", got.Code, got, want)
	}
}

func (r *rig) count(kind core.EventKind) int {
	n := 0
	for _, e := range r.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func id(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, n) }
