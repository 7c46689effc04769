package core

// settle ends a step: it looks at the marked entities. It comes to an end: with no tokens
// coming in, acquires that stay in a served queue lack tokens, or wait for a hold, and
// each acquire has a single hold.
func (c *rebalancing) settle() {
	for i := 0; i < len(c.due); i++ {
		e := c.due[i]
		changed := e.changed
		e.due, e.changed = false, false
		if !c.serves(e) {
			continue
		}
		if changed {
			c.admitting.serveQueue(e)
			c.assessing.tellGain(e)
		}
		c.rebalance(e)
		c.assessing.schedule(e)
	}
	clear(c.due)
	c.due = c.due[:0]
}
