package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"pgregory.net/rapid"
)

// spender is the holder of a lease of share. It grants what its rule allows.
type spender struct {
	id     string
	home   core.SiteID
	tokens int64
	// until is the end of the lease, as the holder knows it.
	until core.Tick
	// level is the level of a bucket at a time, in tokens times the period.
	level int64
	at    core.Tick
	// granted are the grants of a window.
	granted []spent
	// ahead is by how much the holder's calendar is ahead, in milliseconds.
	ahead int64
}

// spent are tokens granted at a time, in a window.
type spent struct {
	at     core.Tick
	tokens int64
	window int64
}

// period is the period of the quotas of this test, in milliseconds.
const period = 60_000

// spare is how many tokens a holder may grant at a time.
func (s *spender) spare(kind rates.Kind, now core.Tick) int64 {
	if kind == rates.Bucket {
		s.level = min(s.tokens*period, s.level+s.tokens*int64(now-s.at))
		s.at = now
		return s.level / period
	}
	spare := s.tokens
	for _, g := range s.granted {
		if now-g.at < period {
			spare -= g.tokens
		}
	}
	return spare
}

// spending is a cluster that grants tokens of a rate quota, with holders of shares.
type spending struct {
	r       *rig
	kind    rates.Kind
	holders []*spender
	granted []spent
	ids     int
}

const spendLimit = 30

func (w *spending) id() string {
	w.ids++
	return id("r", w.ids)
}

// windowAt is the number of a window by a calendar that is ahead.
func (w *spending) windowAt(ahead int64) int64 { return (w.r.now.Wall + ahead) / period }

// acquire has a site grant tokens. Its window counts as the site draws it.
func (w *spending) acquire(t *rapid.T, site core.SiteID) {
	r := w.r
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: "llm", Tokens: core.Tokens(rapid.IntRange(1, 12).Draw(t, "tokens")), Least: 1, Request: key(w.id()),
		Wait: core.Tick(rapid.SampledFrom([]int{0, 0, 500}).Draw(t, "wait")),
	})
	for range 600 {
		if _, answered := r.answers[call]; answered {
			break
		}
		r.advance(1)
	}
	if a := r.answer(call); a.Code == answer.OK {
		// A site that was set back is in the window that it has begun.
		w.granted = append(w.granted, spent{r.now.Tick, int64(a.Tokens), r.view(site, "llm").Ends/period - 1})
	}
}

func (w *spending) lease(t *rapid.T, site core.SiteID) {
	r := w.r
	ttl := core.Tick(rapid.SampledFrom([]int{1000, 30_000, 100_000, 400_000}).Draw(t, "ttl"))
	call, name := r.nextCall(), w.id()
	r.step(site, &input.Acquire{
		Call: call, Entity: "llm", Tokens: core.Tokens(rapid.IntRange(1, 12).Draw(t, "share")), Least: 1, Request: key(name),
		Lease: &input.LeaseTerms{ID: name, TTL: ttl, Share: true},
	})
	if a := r.answer(call); a.Code == answer.OK {
		w.holders = append(w.holders, &spender{
			id: name, home: site, tokens: int64(a.Tokens), until: r.now.Tick + ttl, level: int64(a.Tokens) * period, at: r.now.Tick,
			ahead: r.ahead[site] + rapid.Int64Range(0, period).Draw(t, "ahead"),
		})
	}
}

// holder draws a holder whose lease has not ended; nil for none.
func (w *spending) holder(t *rapid.T) (*spender, int) {
	for i := 0; i < len(w.holders); {
		if w.holders[i].until <= w.r.now.Tick {
			w.holders = append(w.holders[:i], w.holders[i+1:]...)
			continue
		}
		i++
	}
	if len(w.holders) == 0 {
		return nil, 0
	}
	i := rapid.IntRange(0, len(w.holders)-1).Draw(t, "holder")
	return w.holders[i], i
}

func (w *spending) spend(t *rapid.T, s *spender) {
	if n := s.spare(w.kind, w.r.now.Tick); n > 0 {
		n = rapid.Int64Range(max(1, n/2), n).Draw(t, "spent")
		s.level -= n * period
		g := spent{w.r.now.Tick, n, w.windowAt(s.ahead)}
		s.granted = append(s.granted, g)
		w.granted = append(w.granted, g)
	}
}

// end has a holder spend what it has, and end its lease.
func (w *spending) end(t *rapid.T, s *spender, i int) {
	if rapid.Bool().Draw(t, "spends all") {
		w.spend(t, s)
	}
	w.holders = append(w.holders[:i], w.holders[i+1:]...)
	if rapid.Bool().Draw(t, "commits") {
		w.r.commit(s.home, s.id, 0, w.id())
	} else {
		w.r.giveBack(s.home, "llm", s.id, 0, w.id())
	}
}

// check fails if more was granted than the bound of the kind.
func (w *spending) check(t *rapid.T) {
	windows := make(map[int64]int64)
	for i, first := range w.granted {
		if windows[first.window] += first.tokens; w.kind == rates.Window && windows[first.window] > spendLimit {
			t.Fatalf("%d granted in window %d, the limit is %d: %v", windows[first.window], first.window, spendLimit, w.granted)
		}
		sum := int64(0)
		for _, g := range w.granted[i:] {
			sum += g.tokens
			if w.kind == rates.Bucket && sum*period > spendLimit*(period+int64(g.at-first.at)) {
				t.Fatalf("%d granted within %d ms from %d on: %v", sum, g.at-first.at, first.at, w.granted)
			}
		}
	}
}

// TestSharesKeepTheBound: sites grant, lease shares to holders that grant as much as they may,
// move tokens, start anew, and one leaves. No more is granted than the bound, and all comes
// back.
func TestSharesKeepTheBound(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, {Kind: rates.Bucket, Count: 1, Unit: rates.Minute}, minute, {Kind: rates.Window, Count: 1, Unit: rates.Minute, Volatile: true}} {
		t.Run(string(terms.Kind)+map[bool]string{false: "/durable", true: "/volatile"}[terms.Volatile], func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { sharesKeepTheBound(t, rt, terms) })
		})
	}
}

func sharesKeepTheBound(t *testing.T, rt *rapid.T, terms rates.Terms) {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) {
		c.Retention = leavingRetention
		c.Strategy = rapid.SampledFrom([]string{"transfer", "instance"}).Draw(rt, "strategy")
	})
	r.advance(core.Tick(period - r.now.Wall%period))
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: spendLimit, RequestID: "create", Rate: terms})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	if rapid.Bool().Draw(rt, "a is ahead") {
		r.ahead["a"] = rapid.Int64Range(0, period).Draw(rt, "by")
	}
	w := &spending{r: r, kind: terms.Kind}
	leaver := core.SiteID("")
	for range rapid.IntRange(10, 60).Draw(rt, "steps") {
		r.advance(core.Tick(rapid.SampledFrom([]int{0, 1, 50, 1000, 7000, 29_000, 61_000}).Draw(rt, "pause")))
		site := rapid.SampledFrom(r.names).Draw(rt, "site")
		s, i := w.holder(rt)
		switch what := rapid.IntRange(0, 11).Draw(rt, "what"); {
		case what < 4:
			if site != leaver {
				w.acquire(rt, site)
			}
		case what < 6:
			if site != leaver {
				w.lease(rt, site)
			}
		case what == 6 && leaver == "" && rapid.IntRange(0, 4).Draw(rt, "leaves") == 0:
			leaver = site
			r.changeAsync(rapid.SampledFrom(r.names).Draw(rt, "asked"), input.Change{Kind: input.DrainSite, Name: string(site), RequestID: "drain"})
		case what == 7:
			r.restart(site)
			r.advance(1)
		case s == nil:
		case what == 8:
			w.end(rt, s, i)
		case what == 9:
			asked := r.now.Tick
			if a := r.renew(s.home, s.id, 100_000); a.Code == answer.OK {
				s.until = asked + a.Lease().Remaining
			}
		default:
			w.spend(rt, s)
		}
	}
	w.check(rt)
	r.advance(700_000)
	r.names = r.names[:0:0]
	for _, site := range []core.SiteID{"a", "b", "c"} {
		if site != leaver || r.state(map[bool]core.SiteID{false: "a", true: "b"}[leaver == "a"], leaver) != "gone" {
			r.names = append(r.names, site)
		}
	}
	r.books("llm") // buckets fill from the first look on
	r.advance(130_000)
	if left, offered, net := r.books("llm"); left != spendLimit || net != 0 || offered != 0 {
		rt.Fatalf("at last %d left, %d offered, %d out", left, offered, net)
	}
}
