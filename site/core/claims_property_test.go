package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"pgregory.net/rapid"
)

// caller makes attempts of a request, each at some site, and believes the answer to the
// latest only.
type caller struct {
	id      string
	tokens  core.Tokens
	release bool
	// notAfter is the wall time after which the request must not run.
	notAfter int64
	count    uint32
	tried    []core.SiteID
	// last is the call of the latest attempt.
	last input.Call
	// held are the attempts still on the way to a site.
	held []sentAttempt
}

type sentAttempt struct {
	site core.SiteID
	in   input.Input
}

// claimWorld is a rig with callers, and with copies of messages that arrive later.
type claimWorld struct {
	*rig
	t       *rapid.T
	callers []*caller
	late    []message.Envelope
	seen    int
}

func (w *claimWorld) site() core.SiteID { return rapid.SampledFrom(w.names).Draw(w.t, "site") }

// attempt begins the next attempt of a caller: it arrives at once, or is held.
func (w *claimWorld) attempt(c *caller) {
	at := w.site()
	c.count++
	tries := input.Tries{
		Attempt: attempt.Of(c.count, 0), NotAfter: c.notAfter,
		Tried: slices.DeleteFunc(slices.Clone(c.tried), func(s core.SiteID) bool { return s == at }),
	}
	if c.count > 1 && rapid.IntRange(0, 4).Draw(w.t, "any") == 0 {
		// Any site may have been reached: the next list may be shorter again.
		tries.Tried = nil
	}
	if !slices.Contains(c.tried, at) {
		c.tried = append(c.tried, at)
	}
	c.last = w.nextCall()
	var in input.Input
	if c.release {
		in = &input.Release{Call: c.last, Entity: "f", Tokens: c.tokens, Request: key(c.id), Tries: tries}
	} else {
		wait := core.Tick(rapid.SampledFrom([]int{0, 0, 300, 5000}).Draw(w.t, "wait"))
		in = &input.Acquire{Call: c.last, Entity: "e", Tokens: c.tokens, Request: key(c.id), Wait: wait, Tries: tries}
	}
	if rapid.IntRange(0, 2).Draw(w.t, "held") == 0 {
		c.held = append(c.held, sentAttempt{at, in})
		return
	}
	w.arrive(sentAttempt{at, in})
}

// arrive hands an attempt over, and at random a copy of it under a new call.
func (w *claimWorld) arrive(a sentAttempt) {
	w.step(a.site, a.in)
	if rapid.IntRange(0, 3).Draw(w.t, "twice") > 0 {
		return
	}
	switch in := a.in.(type) {
	case *input.Acquire:
		again := *in
		again.Call = w.nextCall()
		w.step(a.site, &again)
	case *input.Release:
		again := *in
		again.Call = w.nextCall()
		w.step(a.site, &again)
	}
}

func (w *claimWorld) act(pause core.Tick) {
	c := rapid.SampledFrom(w.callers).Draw(w.t, "caller")
	switch rapid.SampledFrom([]string{"attempt", "attempt", "attempt", "held", "cut", "cut", "restart", "pause", "pause", "late", "pause long"}).Draw(w.t, "act") {
	case "attempt":
		if w.now.Wall < c.notAfter {
			w.attempt(c)
		}
	case "held":
		if len(c.held) > 0 {
			i := rapid.IntRange(0, len(c.held)-1).Draw(w.t, "which")
			a := c.held[i]
			c.held = slices.Delete(c.held, i, i+1)
			w.arrive(a)
		}
	case "cut":
		s := w.site()
		w.cut[s] = !w.cut[s]
	case "restart":
		w.restart(w.site())
	case "pause":
		w.advance(core.Tick(rapid.IntRange(1, 1500).Draw(w.t, "ms")))
	case "pause long":
		w.advance(pause)
	case "late":
		w.deliverLate()
	}
}

// deliverLate delivers a random earlier message about requests once more, possibly a lost
// message.
func (w *claimWorld) deliverLate() {
	for _, e := range w.sent[w.seen:] {
		if e.Claims != nil {
			w.late = append(w.late, e)
		}
	}
	w.seen = len(w.sent)
	if len(w.late) > 0 {
		e := rapid.SampledFrom(w.late).Draw(w.t, "message")
		w.step(e.To(), input.Deliver{From: e.From(), Messages: []message.Envelope{e}})
	}
}

// times tells how often each caller's tokens have moved. Each caller has another power of
// 8, so that the sum tells.
func (w *claimWorld) times() []core.Tokens {
	_, _, acquired := w.books("e")
	_, _, released := w.books("f")
	released = -released
	var times []core.Tokens
	for _, c := range w.callers {
		net := acquired
		if c.release {
			net = released
		}
		times = append(times, net/c.tokens%8)
	}
	return times
}

// playClaims plays a random schedule to its end: all sites reach each other, and all held
// attempts have arrived.
func playClaims(t *testing.T, rt *rapid.T, pause core.Tick) *claimWorld {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) { c.Retention, c.Trigger = 60_000, "reactive" })
	// At most 8 attempts fit the sums, and the limit lets some be refused.
	r.create("e", 600)
	r.create("f", 600)
	w := &claimWorld{rig: r, t: rt}
	for i, tokens := range []core.Tokens{1, 8, 64, 512} {
		w.callers = append(w.callers,
			&caller{id: id("acquire", i), tokens: tokens, notAfter: r.now.Wall + 40_000},
			&caller{id: id("release", i), tokens: tokens, notAfter: r.now.Wall + 40_000, release: true})
	}
	for range rapid.IntRange(1, 60).Draw(rt, "acts") {
		w.act(pause)
	}
	clear(w.cut)
	for _, c := range w.callers {
		for _, a := range c.held {
			w.arrive(a)
		}
	}
	r.advance(30_000)
	for range 20 {
		w.deliverLate()
	}
	r.advance(30_000)
	for _, name := range r.names {
		if n := r.cores[name].Status().Claims; n > 0 {
			rt.Errorf("%s has %d claims at the end", name, n)
		}
	}
	for _, e := range []string{"e", "f"} {
		if left, offered, net := r.books(e); left+offered+net+w.surplus(e) != 600 {
			rt.Errorf("%s: left %d, offered %d, net %d", e, left, offered, net)
		}
	}
	return w
}

// TestClaimsMoveTokensOnce: messages are lost, late or repeated, and sites restart. An
// acquire whose latest attempt was granted, and a release whose latest was taken, have
// moved their tokens once, and no other more than once.
func TestClaimsMoveTokensOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := playClaims(t, rt, 3000)
		for i, n := range w.times() {
			c := w.callers[i]
			a, answered := w.answers[c.last]
			switch done := answered && a.Code == answer.OK; {
			case n > 1, done && n != 1, answered && a.Code == answer.OutOfTokens && n != 0:
				rt.Errorf("%s of %d tokens, %d attempts, answered %v %v: moved %d times",
					c.id, c.tokens, c.count, answered, a.Code, n)
			}
		}
	})
}

// TestClaimsAfterRetention: when records are forgotten meanwhile, an acquire that was
// granted has its tokens, and no release counts twice. Tokens may stay out.
func TestClaimsAfterRetention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := playClaims(t, rt, 35_000)
		for i, n := range w.times() {
			c := w.callers[i]
			a, answered := w.answers[c.last]
			switch done := answered && a.Code == answer.OK; {
			case c.release && n > 1, !c.release && done && n < 1:
				rt.Errorf("%s of %d tokens, %d attempts, answered %v %v: moved %d times",
					c.id, c.tokens, c.count, answered, a.Code, n)
			}
		}
	})
}
