package sites

import (
	"slices"
	"time"

	"github.com/samya-db/samya/internal/shares"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

const (
	// readTime bounds an exact read. firstAgain to lastAgain are the pauses before
	// it asks sites again, as in an app manager.
	readTime              = 2 * time.Second
	firstAgain, lastAgain = 10 * time.Millisecond, 160 * time.Millisecond
	// maxAge is the greatest age of word of another site for a bounded read that
	// names no age, in ticks.
	maxAge = core.Tick(5000)
	// questionBytes and shareBytes are about the sizes on the wire of a question for
	// a share and its answer.
	questionBytes, shareBytes = 32, 128
)

// readsStale hands the core a read of the site's knowledge.
func (at *site) readsStale(r *virtual.Request) { at.step(&input.Read{Call: r, Entity: entityName}) }

// known counts a bounded read as incomplete unless the site has recent word of all
// others.
func (d *counts) known(v *answer.View) {
	if slices.ContainsFunc(v.Others, func(o answer.OtherView) bool { return o.Age == answer.Never || o.Age > maxAge }) {
		d.incomplete++
	}
}

// exact is an exact read under way, as an app manager beside a site makes it. It
// asks each site for its share, and asks lagging sites again until the shares are a
// consistent cut.
type exact struct {
	at  *site
	r   *virtual.Request
	all []shares.Share
	// round numbers the questions, open is the number of awaited answers, and wait
	// the next pause.
	round, open int
	wait        time.Duration
	over        bool
}

// question is the call of an exact read's question to a site.
type question struct {
	x  *exact
	at *site
}

// readsExact begins an exact read.
func (at *site) readsExact(r *virtual.Request) {
	s := at.s
	x := &exact{at: at, r: r, all: make([]shares.Share, len(s.sites)), wait: firstAgain}
	s.w.After(at.p, min(readTime, max(0, r.Deadline-s.w.Now())), func() { x.end(virtual.TimedOut) })
	all := make([]*site, len(s.sites))
	copy(all, s.sites)
	x.ask(all)
}

// ask asks some sites, in a single round. An exact number needs all sites: if a
// site is known to be out of reach, the read ends at once.
func (x *exact) ask(of []*site) {
	x.at.s.did.asked += len(of)
	x.open = len(of)
	for _, at := range of {
		if at != x.at && !x.at.seemsUp(at.id) {
			x.end(virtual.TimedOut)
			return
		}
	}
	w := x.at.s.w
	for _, at := range of {
		q := &question{x: x, at: at}
		read := func() { at.step(&input.Read{Call: q, Entity: entityName}) }
		if at == x.at {
			read()
			continue
		}
		w.Send(x.at.p, at.p, questionBytes, func() { w.Serve(at.p, read) })
	}
}

// answered sends a share to the site that asked.
func (q *question) answered(a *answer.Answer) {
	share := shares.Share{Site: string(q.at.id), Absent: true}
	if a.Code == answer.OK {
		share = shareOf(q.at.id, a.View())
	}
	if q.at == q.x.at {
		q.x.told(q.at.p, &share)
		return
	}
	q.at.s.w.Send(q.at.p, q.x.at.p, shareBytes, func() { q.x.told(q.at.p, &share) })
}

// told takes a share. All shares of a round make a cut.
func (x *exact) told(p virtual.Place, share *shares.Share) {
	if x.over {
		return
	}
	share.Round = x.round
	x.all[p] = *share
	if x.open--; x.open > 0 {
		return
	}
	cut := shares.Merge(x.all)
	switch {
	case cut.Consistent:
		x.at.s.exactly(&cut)
		x.end(virtual.Granted)
		return
	case len(cut.Again) == 0:
		x.end(virtual.TimedOut)
		return
	}
	x.round++
	var again []*site
	for _, at := range x.at.s.sites {
		if slices.Contains(cut.Again, string(at.id)) {
			again = append(again, at)
		}
	}
	x.at.s.w.After(x.at.p, x.wait, func() {
		if !x.over {
			x.ask(again)
		}
	})
	x.wait = min(2*x.wait, lastAgain)
}

func (x *exact) end(outcome virtual.Outcome) {
	if x.over {
		return
	}
	x.over = true
	if outcome == virtual.TimedOut {
		x.at.s.did.inexact++
	}
	x.at.s.answer(x.r, outcome)
}

// exactly checks that a consistent cut counts every token once.
func (s *Sites) exactly(cut *shares.Cut) {
	if got := core.Tokens(cut.Available + cut.Acquired + cut.InTransit); got != s.limit || cut.Acquired < 0 {
		s.fail("an exact read counts %d tokens, %d of them out; the limit is %d", got, cut.Acquired, s.limit)
	}
}

// seemsUp reports whether another site seems to be in reach, by the last word of
// membership.
func (at *site) seemsUp(other core.SiteID) bool {
	return at.reach == nil || slices.Contains(at.reach, other)
}

// shareOf returns a site's view as a share.
func shareOf(site core.SiteID, v *answer.View) shares.Share {
	sh := shares.Share{
		Site: string(site), Generation: v.Generation, Limit: int64(v.Limit), Surplus: int64(v.Surplus), WrittenOff: int64(v.WrittenOff),
		Applied: uint64(v.Applied), Pledged: v.Moves.Pledged, Left: int64(v.Left), Offered: int64(v.Offered), Net: int64(v.Net),
	}
	for _, st := range v.Moves.Stars {
		sh.Stars = append(sh.Stars, shares.Star{Leader: string(st.Leader), Counter: st.Counter, Applied: st.Applied})
	}
	sh.Sent, sh.Received = transfersOf(v.Moves.Sent), transfersOf(v.Moves.Received)
	return sh
}

func transfersOf(moves []answer.TransferMove) []shares.Transfer {
	list := make([]shares.Transfer, 0, len(moves))
	for _, t := range moves {
		list = append(list, shares.Transfer{Site: string(t.Site), Seq: t.Seq, Tokens: int64(t.Tokens)})
	}
	return list
}
