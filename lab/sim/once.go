package sim

import (
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// ranOnce checks that no administrative change has an effect twice. As long as the run
// lasts, all sites store the same version after a limit change, and the same number of a
// change of the catalogue. Having forgotten the first result is no excuse.
func (o *observer) ranOnce(n *node, r *stored.Records) {
	for i := range r.Entities {
		e := &r.Entities[i]
		q := o.sequence(sequenceID{e.Name, e.Generation})
		for j := range e.Results {
			result := &e.Results[j]
			if result.Outcome != answer.OK {
				continue
			}
			if first, ran := q.ran[result.RequestID]; ran && first != result.Version {
				o.s.fail(ExactlyOnce, "%s: %v: the limit change %q has run twice, to versions %d and %d", n.id, q.id, result.RequestID, first, result.Version)
			}
			q.ran[result.RequestID] = result.Version
		}
	}
	ran := o.catalogue.ran
	for i := range r.Changes {
		ch := &r.Changes[i]
		if ch.Outcome != answer.OK {
			continue
		}
		if first, found := ran[ch.Change.RequestID]; found && first != ch.Number {
			o.s.fail(ExactlyOnce, "%s: the change %q, %s of %q, has run twice, as numbers %d and %d", n.id, ch.Change.RequestID,
				ch.Change.Kind, ch.Change.Name, first, ch.Number)
		}
		ran[ch.Change.RequestID] = ch.Number
	}
}

// timed gives about half of the changes a time after which no site may run them. A client
// stops repeating any change by then. After healing no change has such a time. Each
// entity has to decide then, also where a clock set ahead has put the sequence's clock
// ahead of all calendars.
func (p *op) timed() {
	if !p.s.healed && !p.kind.recorded() && p.kind != read && p.kind != renew && p.id%2 == 0 {
		p.tries.notAfter = epoch + (p.s.now+keepTrying)/millisecond - 1000
	}
}

// overdue checks that a change refused as too late is too late.
func (o *observer) overdue(n *node, p *op) {
	o.s.report.Expired++
	due := p.tries.notAfter
	if due == 0 {
		due = epoch + (p.issued+retention)/millisecond - 2*clockError/millisecond
	}
	latest := epoch + o.s.now/millisecond + 2*clockError/millisecond
	if o.s.faults.Has(ClockStep) {
		// Whoever proposes it, or decides on it, may be ahead.
		latest += stepAhead / millisecond
	}
	if latest < due {
		o.s.fail(Answers, "%s refuses %v as too late, %d ms before its time", n.id, p, due-latest)
	}
}

// bounded sets the bounds of a site's tables and messages that are large by default: a
// site beyond its bounds must behave as rightly as within.
func (s *sim) bounded(c *core.Config) {
	n := s.o.Bounds
	if n == 0 && s.o.Seed%9 == 4 && !s.o.Calm {
		n = 1 + int(s.o.Seed/9%2)
	}
	if n == 0 {
		return
	}
	s.report.Bounded = 1
	c.KeepChanges, c.MaxBatch, c.MaxTold, c.MaxSummaries, c.MaxAsks = n, n, n, n, n
	// Fewer would refuse nearly all changes.
	c.MaxLimitResults, c.MaxResults = 8*n, 128*n
}
