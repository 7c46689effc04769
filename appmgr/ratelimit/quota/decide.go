package quota

import (
	"time"
)

const (
	// idlePeriods is after how many times to live without a request a bucket is abandoned.
	idlePeriods = 3
	// maxLeases bounds the leases of a book.
	maxLeases = 8
)

// decide looks at a bucket: its rule, its share and its times.
func (c *core) decide(b *bucket, now time.Duration) {
	switch {
	case now-b.heard >= 2*c.cfg.TTL:
		// The proxy reports no longer.
		c.forget(b)
		return
	case now-b.busy >= idlePeriods*c.cfg.TTL:
		c.tell(b, now, abandon, 0)
		c.forget(b)
		return
	case entityOf(b.rule) == "":
		c.blanket(b, now, allow)
		return
	case b.rule.Limit == 0:
		c.blanket(b, now, deny)
		return
	case b.book != nil && !b.book.unsent && now >= b.book.until-2*way:
		// Another word might come too late: the proxy would begin a full bucket again.
		c.end(b)
		b.look = true
	}
	if k := b.book; k != nil {
		c.settle(b, k, now)
	}
	if b.op != 0 || b.book != nil && b.book.unsent {
		return
	}
	if b.look {
		b.look = false
		c.rethink(b, now)
	}
}

// blanket tells a verdict that needs no lease, again after half of its time.
func (c *core) blanket(b *bucket, now time.Duration, v verdict) {
	if b.told == 0 || b.verdict != v || now-b.told >= c.cfg.TTL/2 {
		c.tell(b, now, v, c.cfg.TTL)
	}
}

// settle returns tokens that are not needed any more, and tells the proxy of its share, again
// after half of its time.
func (c *core) settle(b *bucket, k *book, now time.Duration) {
	if k.back > 0 && !k.unsent && now >= k.backAt && (b.op == 0 || b.grows) {
		for _, r := range k.returned() {
			r.Entity = b.rule.Entity
			c.giveBack(r)
		}
	}
	if b.op != 0 || !k.unsent && now-k.sent < c.cfg.TTL/2 || now-b.heard >= c.cfg.TTL {
		return
	}
	needs := c.cfg.TTL/2 + c.cfg.TTL/4 + way + skew
	for _, l := range k.leases {
		if l.ends-now < needs {
			b.renews, b.grows = l, false
			c.begin(b)
			c.out.Renewals = append(c.out.Renewals, renewal{Op: b.op, Lease: l.name})
			return
		}
	}
	ttl := min(c.cfg.TTL, k.ends()-now-way-skew).Truncate(time.Second)
	k.sent, k.unsent = now, false
	k.until = max(k.until, now+ttl+way)
	c.out.Assigned = append(c.out.Assigned, assignment{Stream: b.stream, Bucket: b.name, Verdict: share, Tokens: k.tokenBucket(), TTL: ttl})
}

// begin begins a call.
func (c *core) begin(b *bucket) {
	c.op++
	b.op = c.op
	c.ops[c.op] = b
}

// rethink has a bucket's share grow or shrink.
func (c *core) rethink(b *bucket, now time.Duration) {
	want := c.wants(b, now)
	k := b.book
	switch {
	case k == nil:
		c.acquire(b, want)
	case want-k.tokens() >= least(k.kind, k.tokens()) && k.back == 0:
		more := want - k.tokens()
		if len(k.leases) >= maxLeases {
			// Another book takes the place of this one.
			more = want
		}
		c.acquire(b, more)
	case want <= k.tokens()/2 && now-k.changed >= c.settles(k) || want < k.tokens() && c.crowded(b, now) && now-k.changed >= c.cfg.TTL:
		if k.shrink(want, now) {
			c.settle(b, k, now)
		}
	}
}

// settles is how long a share stays before it shrinks. Tokens of a window that come back are
// used up for two windows.
func (c *core) settles(k *book) time.Duration { return max(c.cfg.TTL, min(2*k.period, time.Hour)) }

// crowded reports whether a bucket has more than its part while others lack tokens.
func (c *core) crowded(b *bucket, now time.Duration) bool {
	e := c.shared[b.rule.Entity]
	return e.buckets > 1 && e.refused > 0 && now-e.refused < 3*c.cfg.TTL
}

func (c *core) acquire(b *bucket, tokens int64) {
	b.grows = true
	c.begin(b)
	c.out.Acquires = append(c.out.Acquires, acquisition{Op: b.op, Rule: b.rule, Tokens: tokens})
}
