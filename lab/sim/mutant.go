package sim

// extras repeat an answered request, as it was and with another body.
func (p *op) extras(n *node, c *call) {
	s := p.s
	if s.chance(50) {
		s.after(s.r.Int64N(5*second), func() { n.hand(&call{op: p, done: true, attempt: c.attempt, tried: c.tried}) })
	}
	if s.chance(s.chances.mutant) {
		s.after(s.r.Int64N(5*second), func() {
			n.awake(func() {
				if n.up {
					n.mutant(c)
				}
			})
		})
	}
}

// mutate asks for another change under the id of a decided change, at any site.
func (p *op) mutate() {
	s, other := p.s, *p
	switch {
	case p.kind == move && s.chance(500):
		other.parent += "x"
	case p.kind == remove && s.chance(500):
		other.subtree = !p.subtree
	case p.kind >= addSite && p.kind <= removeSite:
		other.entity += "x"
	case p.kind == reconcile:
		other.truth.InUse++
	default:
		other.limit++
		other.expected++
	}
	s.after(s.r.Int64N(5*second), func() {
		n := s.nodes[s.someSite()]
		n.awake(func() {
			if n.up {
				c := &call{op: p, mutant: true, done: true}
				n.calls[c], p.contradicted = true, true
				n.step(other.input(c, 0, other.limit))
			}
		})
	})
}

// mutant repeats a request with another body at a site that knows the first.
func (n *node) mutant(c *call) {
	p := c.op
	if p.dry {
		return
	}
	other := &call{op: p, mutant: true, done: true, attempt: c.attempt, tried: c.tried}
	n.calls[other] = true
	if in := p.input(other, p.tokens+1, p.limit); !n.offer(in, false) {
		n.step(in)
	}
}

// contradict repeats a waiting acquire with another body, if the acquire still waits by
// then.
func (n *node) contradict(c *call) {
	s, life := n.s, n.life
	if !s.chance(s.chances.mutant) {
		return
	}
	s.after(s.r.Int64N(c.op.wait+1), func() {
		n.awake(func() {
			// An answer of the core that is not handed over yet is unknown here.
			waits := n.up && n.life == life && n.calls[c] && !c.served && !c.cancelled
			if waits && !n.pending() {
				s.report.Contradicted++
				n.mutant(c)
			}
		})
	})
}
