package sim

import (
	"slices"

	"github.com/samya-db/samya/internal/shares"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

const (
	// exactPause is how many milliseconds lie between two exact reads on average.
	exactPause = 700
	// exactTime is how long a read asks, farthest how long a question or an answer is on
	// its way at most.
	exactTime, farthest = 2 * second, 150 * millisecond
)

// exactRead is a read of all sites, like an app manager's. Each site is asked for its
// share at a time of its own, and sites that lag behind are asked again.
type exactRead struct {
	s     *sim
	name  string
	round int
	// all are the shares, views the views behind them; open is how many answers are
	// awaited.
	all   []shares.Share
	views []answer.View
	open  int
	// was is how far the logs of the sites were at the start.
	was []looked
	// of are the sites that were asked.
	of   []*node
	over bool
	// then gets the cut, if all sites have answered and no site is asked again.
	then func(shares.Cut)
}

// readExact has a client read an entity exactly.
func (s *sim) readExact() { s.exactly(s.admin.names[s.r.IntN(len(s.admin.names))], nil) }

func (s *sim) exactly(name string, then func(shares.Cut)) {
	s.report.ExactBegun++
	r := &exactRead{
		s: s, name: name, then: then,
		all: make([]shares.Share, len(s.nodes)), views: make([]answer.View, len(s.nodes)), was: make([]looked, len(s.nodes)),
	}
	r.of = s.inside()
	for i := range s.nodes {
		if l := s.observe.logs[i][name]; l != nil {
			r.was[i] = looked{log: l, nets: len(l.nets)}
		}
	}
	r.ask(r.of)
	s.after(exactTime, func() { r.over = true })
}

// ask asks some of the sites, in the same round.
func (r *exactRead) ask(nodes []*node) {
	s := r.s
	r.open = len(nodes)
	for _, n := range nodes {
		s.after(s.r.Int64N(farthest), func() {
			s.ask(n, r.name, func(c *call) input.Input { return &input.Read{Call: c, Entity: r.name} }, func(a *answer.Answer) {
				told := *a
				s.after(s.r.Int64N(farthest), func() { r.answered(n, &told) })
			})
		})
	}
}

// answered takes in a share; all shares of a round make a cut.
func (r *exactRead) answered(n *node, a *answer.Answer) {
	if r.over || r.s.violation != nil {
		return
	}
	switch a.Code {
	case answer.OK:
		r.all[n.i], r.views[n.i] = share(n.id, r.round, a.View()), *a.View()
	case answer.NotFound:
		r.all[n.i], r.views[n.i] = shares.Share{Site: string(n.id), Round: r.round, Absent: true}, answer.View{}
	default:
		r.over = true
		return
	}
	if r.open--; r.open > 0 {
		return
	}
	all := r.shares()
	cut := shares.Merge(all)
	if cut.Consistent {
		r.over = true
		r.s.report.ExactReads++
		r.check(&cut)
		if r.then != nil {
			r.then(cut)
		}
		return
	}
	if len(cut.Again) == 0 {
		r.over = true
		if slices.ContainsFunc(all, func(sh shares.Share) bool { return !sh.Absent }) {
			r.s.fail(Reads, "%q: %+v is no consistent cut, and nobody to be asked again", r.name, r.all)
		}
		return
	}
	r.s.report.AskedAgain++
	r.round++
	var again []*node
	for _, n := range r.s.nodes {
		if slices.Contains(cut.Again, string(n.id)) {
			again = append(again, n)
		}
	}
	r.ask(again)
}

// shares are the shares of the sites that were asked.
func (r *exactRead) shares() []shares.Share {
	list := make([]shares.Share, 0, len(r.of))
	for _, n := range r.of {
		list = append(list, r.all[n.i])
	}
	return list
}

// share converts a site's view into the form that is added up.
func share(site core.SiteID, round int, v *answer.View) shares.Share {
	sh := shares.Share{
		Site: string(site), Round: round, Generation: v.Generation, Limit: int64(v.Limit), Surplus: int64(v.Surplus), WrittenOff: int64(v.WrittenOff), Owed: int64(v.Debt),
		Applied: uint64(v.Applied), Pledged: v.Moves.Pledged, Left: int64(v.Left), Offered: int64(v.Offered), Net: int64(v.Net),
	}
	for _, st := range v.Moves.Stars {
		sh.Stars = append(sh.Stars, shares.Star{Leader: string(st.Leader), Counter: st.Counter, Applied: st.Applied})
	}
	transfers := func(moves []answer.TransferMove) (list []shares.Transfer) {
		for _, t := range moves {
			list = append(list, shares.Transfer{Site: string(t.Site), Seq: t.Seq, Tokens: int64(t.Tokens)})
		}
		return list
	}
	sh.Sent, sh.Received = transfers(v.Moves.Sent), transfers(v.Moves.Received)
	sh.Handed, sh.Inherited = transfers(v.Moves.Handed), transfers(v.Moves.Inherited)
	return sh
}

// check compares a consistent cut with the model, and with the durable state of each site
// during the read.
func (r *exactRead) check(cut *shares.Cut) {
	s, o, all := r.s, r.s.observe, r.shares()
	var applied, generation uint64
	for i := range all {
		applied, generation = max(applied, all[i].Applied), all[i].Generation
	}
	q := o.sequence(sequenceID{r.name, generation})
	if q.limits == nil {
		s.fail(Reads, "%q of generation %d, which was never created: %+v", r.name, generation, all)
		return
	}
	if len(s.nodes) > 1 && cut.Limit != int64(q.limits[applied].limit) {
		s.fail(Reads, "%q has the limit %d after instance %d, by the model %d", r.name, cut.Limit, applied, q.limits[applied].limit)
	}
	// All tokens are counted once: at the sites, or in a transfer sent and not taken. The
	// debt is in circulation beside the limit.
	var sum int64
	for i := range all {
		if all[i].Applied == applied {
			sum = -all[i].Owed
		}
	}
	for i := range all {
		sh := &all[i]
		sum += sh.Left + sh.Offered + sh.Net
		for _, t := range sh.Sent {
			if !slices.ContainsFunc(all, func(x shares.Share) bool { return x.Site == t.Site }) {
				continue
			}
			taken := uint64(0)
			for _, other := range all[slices.IndexFunc(all, func(x shares.Share) bool { return x.Site == t.Site })].Received {
				if other.Site == sh.Site {
					taken = other.Seq
				}
			}
			if t.Seq > taken {
				sum += t.Tokens
			}
		}
	}
	if sum != cut.Limit-cut.Surplus-cut.WrittenOff || cut.Available+cut.Acquired+cut.InTransit != sum {
		s.fail(Reads, "%q: a cut of %d tokens is called consistent: %+v of %+v", r.name, sum, cut, all)
	}
	r.checkAcquired(cut)
}

// checkAcquired checks the number of tokens said to be out. It lies between the sums of
// the least and of the most that was out of the sites meanwhile.
func (r *exactRead) checkAcquired(cut *shares.Cut) {
	var least, most core.Tokens
	for _, n := range r.of {
		was := r.was[n.i]
		if was.log == nil || was.log != r.s.observe.logs[n.i][r.name] {
			return // Created or deleted meanwhile.
		}
		l, m := was.log.outSince(was.nets)
		least, most = least+l, most+m
	}
	if rated(r.name) {
		least = 0 // a window may be over before a site begins another
	}
	if got := core.Tokens(cut.Acquired); got < least || got > most {
		r.s.fail(Reads, "%q: %d are said to be out, meanwhile it was between %d and %d: %+v", r.name, got, least, most, r.all)
	}
}

// outSince is the least and the most that was out since the log had so many entries,
// including the last of these entries.
func (l *readLog) outSince(entries int) (least, most core.Tokens) {
	since := l.nets[max(0, entries-1):]
	least, most = since[0].least, since[0].most
	for _, s := range since {
		least, most = min(least, s.least), max(most, s.most)
	}
	return least, most
}

// exactAtRest reads all entities exactly once nothing moves any more: each read has to be
// a consistent cut of the durable state.
func (s *sim) exactAtRest() {
	if s.violation != nil {
		return
	}
	for _, name := range s.admin.names {
		if !s.existsAnywhere(name) {
			continue
		}
		told := false
		s.exactly(name, func(cut shares.Cut) {
			told = true
			var out core.Tokens
			for _, n := range s.inside() {
				out += n.durable.Books[name].Net
			}
			if out != core.Tokens(cut.Acquired) && !rated(name) {
				s.fail(Reads, "at rest, %d of %q are said to be out, durable are %d", cut.Acquired, name, out)
			}
		})
		s.runUntil(s.now + exactTime)
		if !told {
			s.fail(Liveness, "at rest, an exact read of %q finds no consistent cut", name)
		}
	}
}

// ask hands a site an input and its answer to then. If the site is down or crashes there
// is no answer.
func (s *sim) ask(n *node, entity string, with func(*call) input.Input, then func(*answer.Answer)) {
	n.awake(func() {
		if !n.up || s.violation != nil {
			return
		}
		c := &call{op: &op{kind: read, entity: entity}}
		n.calls[c], s.asking[c] = true, then
		n.step(with(c))
	})
}

// asked hands an answer to the function that waits for it since [sim.ask], and reports
// whether there was such a function.
func (s *sim) asked(n *node, c *call, a *answer.Answer) bool {
	then, found := s.asking[c]
	if !found || n.stale != nil && a.Code != answer.Unvouched {
		return false
	}
	delete(s.asking, c)
	then(a)
	return true
}
