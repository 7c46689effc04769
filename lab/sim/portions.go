package sim

import (
	"maps"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// Tenants share a site's table of requests: each entity of a run is a tenant. Some runs
// have tables so small that they fill. A table may have in it at most three kinds of
// requests. First, requests that were answered within the retention, or are stored and
// were found at the start. Second, requests that are answered with this batch. Third,
// requests that are handed over and not answered.

// crowd sets a small bound of the table of requests in some long runs.
func (s *sim) crowd(c *core.Config) {
	if !s.crowded() {
		return
	}
	s.report.Crowded = 1
	c.MaxRequests = []int{600, 700, 800, 1000}[s.o.Seed/9%4]
}

func (s *sim) crowded() bool { return s.o.Seed%9 == 7 && s.o.Long && !s.o.Calm && !s.o.Hungry }

// tableShare is the most that a site's table of requests may have: mine of a tenant, and
// all in total; others are the other tenants that may have something. fresh is how much
// of all may have come since the last batch, or waits.
type tableShare struct{ mine, all, others, fresh int }

// tenant is the tenant of a request: the first entity it names.
func (p *op) tenant() string {
	if len(p.parts) > 0 {
		return p.parts[0].Entity
	}
	return p.entity
}

// shareOf counts for the tenant of a request, with the additions of a batch that has the
// answer. Requests without a drained answer that the batch refuses have left nothing. A
// request that was recorded again, as for a later attempt, has two records until the
// first is forgotten.
func (n *node) shareOf(p *op, batch *core.Effects) tableShare {
	weight := make(map[attempt.Key]int)
	add := func(r *stored.Request) {
		if n.s.opOf(r.Key) != nil {
			weight[r.Key] += 1 + len(r.Parts)
		}
	}
	for _, b := range n.drained.Blocks.List {
		if n.keeps(b.Number) {
			for i := range b.Value.Records {
				add(&b.Value.Records[i])
			}
		}
	}
	old := maps.Clone(weight)
	for i := range batch.Records.Block.Records {
		add(&batch.Records.Block.Records[i])
	}
	for c := range n.calls {
		if c.op != nil && c.op.kind.recorded() && !c.drained {
			weight[c.op.key] = max(weight[c.op.key], 1+len(c.op.parts))
		}
	}
	var sh tableShare
	tenants := make(map[string]bool)
	for key, w := range weight {
		tenant := n.s.opOf(key).tenant()
		sh.all += w
		if old[key] == 0 {
			sh.fresh += w
		}
		if tenant == p.tenant() {
			sh.mine += w
		} else {
			tenants[tenant] = true
		}
	}
	sh.others = len(tenants)
	return sh
}

// keeps reports whether a site may not have forgotten a block before the last batch.
func (n *node) keeps(block uint64) bool {
	at := n.blocks[block]
	if at <= n.booted {
		// It was found at the start, and is kept from when the site began to serve.
		if at = n.sweeps + second; n.sweeps == 0 {
			return true
		}
	}
	return float64(at)+float64(retention)/n.drift+float64(10*millisecond) >= float64(n.swept)
}

// crowded checks the refusals of requests for want of room in the table. A tenant with
// less than an equal part is refused only if the table is full. Nobody is refused before
// the last eighth.
func (o *observer) crowded(n *node, batch *core.Effects) {
	bound := n.cfg.MaxRequests
	for _, r := range batch.Replies {
		if c, is := r.Call.(*call); is && bound > 0 && r.Answer.Code == answer.Overloaded {
			c.drained = true
		}
	}
	defer func() {
		for _, r := range batch.Replies {
			if c, is := r.Call.(*call); is && bound > 0 {
				c.drained = true
			}
		}
	}()
	for _, r := range batch.Replies {
		c, is := r.Call.(*call)
		if r.Answer.Code != answer.Overloaded || !is || c.op == nil || c.op.kind > release || c.op.lease != nil || numbered(c.attempt) > attempt.Of(1, 0) {
			continue
		}
		if bound == 0 {
			o.s.fail(Refusal, "%s answers %v: too many are remembered", n.id, c)
			return
		}
		o.s.report.CrowdedOut++
		sh, need := n.shareOf(c.op, batch), 1+len(c.op.parts)
		switch {
		case sh.fresh >= bound/4:
			// While others are out of reach, older requests are kept in half of the table.
		case sh.all+need > bound:
			o.s.report.CrowdedFull++
		case sh.all+need <= bound-bound/8:
			o.s.fail(Refusal, "%s refuses %v, and has %d of %d requests at most", n.id, c, sh.all, bound)
		case sh.mine < max(1, bound/(sh.others+2)):
			o.s.fail(Refusal, "%s refuses %v: its tenant has %d, all have %d of %d requests at most, others are %d",
				n.id, c, sh.mine, sh.all, bound, sh.others)
		}
	}
}
