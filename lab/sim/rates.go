package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with rates has rate quotas of all kinds, with periods of a second to an hour. Their
// clients release nothing. Sites' clocks differ, jump and drift, so sites are in different
// windows, and tokens move between them all the time. For each window, as each site's clock
// draws it, the grants of all sites are added up; for buckets and sliding windows, those of
// each interval (flows.go). Volatile rate quotas have clients of their own (draws.go). Some
// clients lease shares and grant tokens in place of sites (shares.go), others reset rate
// quotas (resets.go).

// rateNames is how the names of rate quotas begin.
const rateNames = "rate"

// rated reports whether an entity is a rate quota, or stands in a tree with one.
func rated(name string) bool { return strings.HasPrefix(name, rateNames) }

// comesBack reports whether tokens out of an entity come back by the clock: it is a rate quota.
func (s *sim) comesBack(name string) bool {
	_, isRate := s.rates[name]
	return isRate
}

// periods are the periods of rate quotas.
var periods = []string{"1s", "2s", "5s", "10s", "1m", "1h"}

// addRates adds rate quotas to the entities of a run.
func (s *sim) addRates() {
	if !s.o.Rates || s.o.Hungry {
		return
	}
	s.rates, s.scarcity = make(map[string]rates.Terms), 1+s.r.IntN(40)
	for i := range 1 + s.r.IntN(3) {
		name, durable, kind := fmt.Sprintf("%s%d", rateNames, i), s.chance(600), kinds[s.r.IntN(len(kinds))]
		if i == 0 && s.chance(700) {
			// Tokens of other windows are the most that can go wrong.
			durable, kind = true, rates.Window
		}
		t, err := rates.Parse(string(kind), periods[s.r.IntN(len(periods))], "", &durable)
		if err != nil {
			panic(err)
		}
		s.rates[name] = t
		if durable {
			s.admin.names = append(s.admin.names, name)
		} else {
			s.drawn = append(s.drawn, name)
		}
	}
	if s.chance(700) {
		s.addTemplate()
	}
	if s.chance(500) {
		s.addRateTree()
	}
}

// addTemplate adds a template.
func (s *sim) addTemplate() {
	name := rateNames + "-keys"
	s.rates[name] = s.templateTerms()
	s.drawn = append(s.drawn, name)
	if s.chance(400) {
		// An entity takes the place of a key, now and then.
		name += "/0"
		t := s.templateTerms()
		t.Keys = false
		s.rates[name] = t
		s.drawn = append(s.drawn, name)
	}
}

// templateTerms draws the terms of a template: a bucket, or windows below an hour.
func (s *sim) templateTerms() rates.Terms {
	volatile := false
	t, err := rates.Parse(string(kinds[s.r.IntN(2)]), periods[s.r.IntN(len(periods)-1)], "", &volatile)
	if err == nil {
		t, err = t.OfKeys(nil)
	}
	if err != nil {
		panic(err)
	}
	return t
}

// kinds are the kinds of rate quotas; the first two have templates.
var kinds = []rates.Kind{rates.Window, rates.Bucket, rates.Sliding}

// rateLimit lowers a limit for a rate quota: clients ask for few tokens in a short window.
func (s *sim) rateLimit(limit core.Tokens) core.Tokens {
	return limit/core.Tokens(s.scarcity) + 1
}

// terms are the terms of an entity to be created.
func (p *op) terms() rates.Terms {
	return p.s.rates[p.entity]
}

// windows are the grants of an entity in each window, less those given back by a reset.
type windows map[int64]*inWindow

// inWindow are the grants of all sites together in a window, and those of each site.
type inWindow struct {
	sum core.Tokens
	by  []core.Tokens
}

// windowed checks the rate quotas of a transaction that is about to become durable.
func (o *observer) windowed(n *node, r *stored.Records) {
	states := make(map[string]*stored.Entity)
	for i := range r.Entities {
		states[r.Entities[i].Name] = &r.Entities[i]
	}
	for i := range r.Books {
		b := &r.Books[i]
		if !rated(b.Name) {
			continue
		}
		was, known := n.durable.Entities[b.Name]
		is := states[b.Name]
		if is == nil {
			is = &was
		}
		known = known && was.Generation == is.Generation
		if !known {
			// The transaction creates it.
			was, o.net[n.i][b.Name] = stored.Entity{Rate: stored.Rate{Window: is.Rate.Window}}, o.put[b.Name]+n.inShares(b)+n.inEndedShares(b)
		}
		o.stepped(n, b, &was.Rate, &is.Rate, o.put[b.Name])
	}
}

// stepped checks the step of a site's books of a rate quota.
func (o *observer) stepped(n *node, b *stored.Books, was, is *stored.Rate, granted core.Tokens) {
	q := o.sequence(sequenceID{b.Name, b.Generation})
	if is.Window < was.Window {
		o.s.fail(Rates, "%s: %v goes from window %d back to %d", n.id, q.id, was.Window, is.Window)
		return
	}
	if o.s.inTree(b.Name) {
		o.movesOne(n, b.Name, b.Net-o.net[n.i][b.Name])
		return
	}
	held := o.sharesOut(n, q, b, is)
	if is.Terms.Kind != rates.Window || is.Terms.Volatile {
		// Intervals are judged, not the books.
		o.resetBooks(n, b, is, held+granted)
		o.movesOne(n, b.Name, b.Net-o.net[n.i][b.Name])
		return
	}
	before, after := granted, core.Tokens(0)
	if is.Window == was.Window {
		o.sameWindow(n, b, was, is)
		o.resetBooks(n, b, is, held+granted)
	} else {
		o.s.report.Windows++
		if latest := o.latestWindow(n, b.Name); is.Window > latest {
			o.s.fail(Rates, "%s: %v is in window %d, by its calendar at most in %d", n.id, q.id, is.Window, latest)
			return
		}
		// Tokens out are late, held, of shares that have ended, were granted since the window
		// began, or are a bequest.
		out, bequeathed := b.Net-is.Late-held-ended(is), max(0, o.bequeathedTo[b.Name])
		if q.handoffs != nil {
			// Shares that came with a bequest may be late as well.
			out = max(0, out)
		}
		if out < 0 || out > granted+bequeathed {
			o.s.fail(Rates, "%s: %v has %d out in window %d, of them %d late, %d held, %d of ended shares; %d were granted, %d bequeathed", n.id, q.id, b.Net,
				is.Window, is.Late, held, ended(is), granted, bequeathed)
			return
		}
		if back := o.resetBack(b.Name); back > 0 {
			o.s.fail(Rates, "%s: %v: a reset that begins window %d tells of %d tokens more", n.id, q.id, is.Window, back)
		}
		after = max(0, min(granted, out-bequeathed))
		before = granted - after
		o.movesOne(n, b.Name, b.Net-o.net[n.i][b.Name])
	}
	if is.Late > was.Late {
		o.s.report.Late++
	}
	o.grantedIn(q, b.Name, o.windowBefore(q.id, was, is), before, n.i)
	o.grantedIn(q, b.Name, is.Window, after, n.i)
}

// windowBefore is the window of the grants of a transaction before its last window. The site
// may have gone through several: grants count in a window with the fewest.
func (o *observer) windowBefore(id sequenceID, was, is *stored.Rate) int64 {
	first := was.Window
	if o.note.wall != 0 {
		first = max(first, min(is.Window-1, o.s.windowAt(id.entity, o.note.wall)))
	}
	best := first
	fewest := core.Tokens(math.MaxInt64)
	for w := first; w < is.Window && fewest > 0; w++ {
		granted := core.Tokens(0)
		if in := o.windows[id][w]; in != nil {
			granted = in.sum
		}
		if granted < fewest {
			best, fewest = w, granted
		}
	}
	return best
}

// sameWindow takes in the late tokens of a step within a window, and those of a reset.
func (o *observer) sameWindow(n *node, b *stored.Books, was, is *stored.Rate) {
	late := max(0, is.Late-was.Late) // late tokens of a bequest leave with it
	if came := max(0, o.bequeathedTo[b.Name]) + o.inheritedShares(n, b.Name); came > 0 && o.net[n.i][b.Name]+late != b.Net {
		late -= came // the bequest's tokens out are late, and counted already
	}
	o.movesOne(n, b.Name, late-o.resetBack(b.Name))
}

// latestWindow is the last window that a site's calendar has ever shown.
func (o *observer) latestWindow(n *node, name string) int64 {
	return o.s.windowAt(name, n.shown)
}

// grantedIn adds up the grants of a window at all sites, of an entity or a key of it. Less
// those given back they never exceed the limit.
func (o *observer) grantedIn(q *sequence, name string, window int64, tokens core.Tokens, site int) {
	if tokens == 0 {
		return
	}
	id := sequenceID{name, q.id.generation}
	in := o.windows[id][window]
	if in == nil {
		if o.windows[id] == nil {
			o.windows[id] = make(windows)
		}
		in = &inWindow{by: make([]core.Tokens, len(o.s.names))}
		o.windows[id][window] = in
	}
	if in.sum += tokens; site != nowhere {
		in.by[site] += tokens
	}
	if o.s.tracing {
		o.s.note("%v: site %d grants %d in window %d, %d in all", id, site, tokens, window, in.sum)
	}
	most := o.mostOf(q)
	if q.lowered {
		// Tokens of a later window may pay the debt, and a raise comes on top then.
		most += q.raised
	}
	if q.limits != nil && in.sum > most {
		o.s.fail(Rates, "%v: %d tokens are granted in window %d, the limit is at most %d", id, in.sum, window, most)
	}
}

// givenIn takes in a reset: a site gives back at most so many of its grants in a window.
func (o *observer) givenIn(id sequenceID, window int64, site int, most core.Tokens) {
	if in := o.windows[id][window]; in != nil {
		back := min(most, in.by[site])
		if o.s.tracing {
			o.s.note("%v: site %d gives back %d of %d in window %d", id, site, back, most, window)
		}
		in.sum, in.by[site] = in.sum-back, in.by[site]-back
	}
}

// mostOf is the highest limit that an entity ever had.
func (o *observer) mostOf(q *sequence) (most core.Tokens) {
	for _, l := range q.limits {
		most = max(most, l.limit)
	}
	if len(o.s.nodes) == 1 {
		// A site alone decides without a message that the model could follow.
		most = max(most, o.highest[q.id.entity])
	}
	return most
}

// windowAt is the number of the window of a rate quota at a time.
func (s *sim) windowAt(name string, wall int64) int64 {
	t := s.rates[name]
	window, _ := rates.NewCalendar(&t).At(wall)
	return window
}

// furthest is the site with the calendar that is furthest ahead: tokens of all others are
// good there at once.
func (s *sim) furthest() *node {
	return slices.MaxFunc(s.inside(), func(a, b *node) int { return cmp.Compare(a.time().Wall, b.time().Wall) })
}
