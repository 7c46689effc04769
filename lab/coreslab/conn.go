package coreslab

// conn is a connection: at the site a goroutine reads and another sends, and at the client a
// goroutine does both.
type conn struct {
	s              *site
	reader, sender *routine
	// client is nil if clients have machines of their own.
	client  *routine
	callers int
	// arrived are messages that the reader has not read, out the answered calls, and told
	// the messages with answers that the client has not read.
	arrived queue[[]call]
	out     []call
	told    queue[[]call]
}

// start has all callers ask.
func (c *conn) start() {
	c.reader.start(c.read)
	c.sender.start(c.send)
	first := make([]call, c.callers)
	for i := range first {
		first[i] = call{conn: c, sent: c.s.m.now()}
	}
	c.arrive(first)
	if c.client != nil {
		c.client.start(c.ask)
	}
}

// arrive brings a message to the reader.
func (c *conn) arrive(calls []call) {
	c.arrived.push(calls)
	c.reader.wake()
}

// read reads the next message.
func (c *conn) read() {
	if c.arrived.len() == 0 {
		c.reader.park(c.read)
		return
	}
	s, calls := c.s, c.arrived.pop()
	c.reader.work(s.c.Receive+float64(len(calls))*s.c.Decode, func() {
		s.inbox = append(s.inbox, calls...)
		s.handedOver(c.reader, c.read)
	})
}

// send sends the answers that there are.
func (c *conn) send() {
	if len(c.out) == 0 {
		c.sender.park(c.send)
		return
	}
	s, n := c.s, min(len(c.out), maxReplies)
	calls := c.out[:n:n]
	c.out = c.out[n:]
	if len(c.out) == 0 {
		c.out = nil
	}
	c.sender.work(float64(n)*s.c.Reply+s.c.Send, func() {
		if c.client != nil {
			c.told.push(calls)
			c.client.wake()
		} else {
			s.m.world.At(s.m.now()+netDelay, func() { c.answered(calls); c.again(calls) })
		}
		c.send()
	})
}

// ask is a client that shares the cores of the site.
func (c *conn) ask() {
	if c.told.len() == 0 {
		c.client.park(c.ask)
		return
	}
	s, calls := c.s, c.told.pop()
	c.client.work(s.c.ClientMessage+float64(len(calls))*s.c.Client, func() {
		c.answered(calls)
		for i := range calls {
			calls[i].sent = s.m.now()
		}
		c.arrive(calls)
		c.ask()
	})
}

// answered notes answers.
func (c *conn) answered(calls []call) {
	s := c.s
	s.answers += len(calls)
	s.messages++
	for _, a := range calls {
		s.latencies = append(s.latencies, s.m.now()-a.sent)
	}
}

// again has callers ask again, from a machine of their own.
func (c *conn) again(calls []call) {
	s := c.s
	for i := range calls {
		calls[i].sent = s.m.now()
	}
	s.m.world.At(s.m.now()+netDelay, func() { c.arrive(calls) })
}
