package quota

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
)

// The times of assignments. A proxy may go by an assignment until its time to live is over,
// counted from its arrival, way after it was sent at most. A lease ends early by skew at most,
// if its site starts anew and its wall clock was set ahead. So each assignment ends so long
// before the leases that cover it.
const (
	way  = 2 * time.Second
	skew = 10 * time.Second
)

// Config bounds a core.
type Config struct {
	// TTL is the time to live of an assignment, in whole seconds, 4 at least.
	TTL time.Duration
	// MaxBuckets bounds the buckets of all streams, and MaxOfStream the buckets of each.
	MaxBuckets, MaxOfStream int
}

// LeaseTTL is the time to live of leases.
func (c *Config) LeaseTTL() time.Duration { return c.TTL + c.TTL/10 + way + skew }

// core decides about the assignments of all proxies. Its inputs are its methods, each with the
// time on a clock that is never set; Drain returns the effects. It is not for several goroutines
// at a time.
type core struct {
	cfg     Config
	streams map[streamID]map[string]*bucket
	count   int
	ops     map[opID]*bucket
	op      opID
	// ended are books whose proxies may still go by their assignments.
	ended []ended
	// shared are the entities with buckets.
	shared map[string]*entity
	out    effects
}

type ended struct {
	book   *book
	entity string
}

// entity is a rate quota with proxies that have shares.
type entity struct {
	buckets int
	// refused is when an acquire last found no tokens; 0 for never.
	refused time.Duration
}

// bucket is a bucket of a proxy.
type bucket struct {
	stream streamID
	name   string
	rule   *rules.Match
	demand demand
	// heard is when the proxy last reported, and busy when it last reported requests.
	heard, busy time.Duration
	// book is nil before the first lease.
	book *book
	// op is the call that the bucket waits for; 0 for none. grows says that it is an acquire,
	// else it renews.
	op     opID
	grows  bool
	renews *lease
	// gone says that nobody wants the outcome of op.
	gone bool
	// look says that the share is to be thought over.
	look bool
	// told is when a verdict without a share was last told; 0 for never.
	told    time.Duration
	verdict verdict
}

// newCore returns a core without streams.
func newCore(cfg Config) *core {
	return &core{cfg: cfg, streams: make(map[streamID]map[string]*bucket), ops: make(map[opID]*bucket), shared: make(map[string]*entity)}
}

// Buckets is the number of buckets of all streams.
func (c *core) Buckets() int { return c.count }

// has reports whether a stream has a bucket.
func (c *core) has(stream streamID, name string) bool { return c.streams[stream][name] != nil }

// Drain returns the effects since the last call.
func (c *core) Drain() effects {
	out := c.out
	c.out = effects{}
	return out
}

// Report takes up a report of a stream. It returns how many of the buckets are beyond the
// bounds: the proxy is told nothing about them.
func (c *core) Report(now time.Duration, stream streamID, usages []usage) (beyond int) {
	of := c.streams[stream]
	if of == nil {
		of = make(map[string]*bucket)
		c.streams[stream] = of
	}
	for i := range usages {
		u := &usages[i]
		b := of[u.Bucket]
		if b == nil {
			if len(of) >= c.cfg.MaxOfStream || c.count >= c.cfg.MaxBuckets {
				beyond++
				continue
			}
			b = &bucket{stream: stream, name: u.Bucket, busy: now}
			of[u.Bucket] = b
			c.count++
		}
		c.ruled(b, u.Rule)
		b.demand.note(u.Requests, now)
		if b.heard = now; u.Requests > 0 {
			b.busy = now
		}
		b.look = true
		c.decide(b, now)
	}
	return beyond
}

// Closed ends a stream. Its proxy goes by its assignments for their time.
func (c *core) Closed(stream streamID) {
	of := c.streams[stream]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		c.forget(of[name])
	}
	delete(c.streams, stream)
}

// Tick has time pass.
func (c *core) Tick(now time.Duration) {
	kept := c.ended[:0]
	for _, e := range c.ended {
		if e.book.until > now {
			kept = append(kept, e)
			continue
		}
		for _, l := range e.book.leases {
			c.giveBack(Return{Lease: l.name, Entity: e.entity})
		}
	}
	clear(c.ended[len(kept):])
	c.ended = kept
	for _, stream := range slices.Sorted(maps.Keys(c.streams)) {
		of := c.streams[stream]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			c.decide(of[name], now)
		}
		if len(of) == 0 {
			delete(c.streams, stream)
		}
	}
}

// over is the bucket of a call that has ended; nil if there is no such call.
func (c *core) over(op opID) *bucket {
	b := c.ops[op]
	if b != nil {
		delete(c.ops, op)
		b.op = 0
	}
	return b
}

// Acquired takes up a lease that was asked for at a time.
func (c *core) Acquired(now, asked time.Duration, op opID, g Granted) {
	b := c.over(op)
	if b == nil {
		return
	}
	l := &lease{name: g.Lease, tokens: g.Tokens, ends: asked + g.Remaining}
	if b.gone {
		c.giveBack(Return{Lease: l.name, Entity: b.rule.Entity})
		return
	}
	if b.book != nil && len(b.book.leases) >= maxLeases {
		c.end(b)
	}
	if b.book == nil {
		b.book = &book{kind: g.Terms.Kind, period: longest(&g.Terms)}
	}
	b.book.add(l, now)
	b.told = 0
	c.decide(b, now)
}

// Refused takes up that no share was leased.
func (c *core) Refused(now time.Duration, op opID, why outcome) {
	b := c.over(op)
	if b == nil || b.gone {
		return
	}
	b.look = false
	if why == noTokens {
		if e := c.shared[b.rule.Entity]; e != nil {
			e.refused = now
		}
		if b.book == nil {
			c.tell(b, now, deny, max(time.Second, c.cfg.TTL/4).Truncate(time.Second))
		}
	}
	c.decide(b, now)
}

// Renewed takes up that a lease asked for at a time has so long to live.
func (c *core) Renewed(now, asked time.Duration, op opID, remaining time.Duration) {
	b := c.over(op)
	if b == nil {
		return
	}
	b.renews.ends = max(b.renews.ends, asked+remaining)
	if !b.gone {
		c.decide(b, now)
	}
}

// Unrenewed takes up that a lease was not renewed. If it is over for good, its book is not
// extended any more: another book takes its place.
func (c *core) Unrenewed(now time.Duration, op opID, over bool) {
	b := c.over(op)
	if b == nil || b.gone {
		return
	}
	if over || b.book.until-now < c.cfg.TTL/2 {
		c.end(b)
		b.look = true
		c.decide(b, now)
	}
}

// ruled sets the rule of a bucket. Under another entity the bucket begins anew.
func (c *core) ruled(b *bucket, m *rules.Match) {
	if before := entityOf(b.rule); before != entityOf(m) {
		c.end(b)
		c.drop(b)
		if after := entityOf(m); after != "" {
			e := c.shared[after]
			if e == nil {
				e = &entity{}
				c.shared[after] = e
			}
			e.buckets++
		}
		b.demand, b.told = demand{}, 0
	}
	b.rule = m
}

// entityOf is the entity of a rule that counts; empty for none.
func entityOf(m *rules.Match) string {
	if m == nil || m.Unlimited || m.Shadow {
		return ""
	}
	return m.Entity
}

// drop has a bucket share its entity no more. A call under way is for nobody.
func (c *core) drop(b *bucket) {
	if b.op != 0 {
		c.orphan(b)
	}
	if e := c.shared[entityOf(b.rule)]; e != nil {
		if e.buckets--; e.buckets <= 0 {
			delete(c.shared, entityOf(b.rule))
		}
	}
}

// end ends the book of a bucket: its leases are held as long as the proxy may go by them.
func (c *core) end(b *bucket) {
	if b.book == nil {
		return
	}
	if b.op != 0 && !b.grows {
		c.orphan(b)
	}
	c.ended = append(c.ended, ended{b.book, b.rule.Entity})
	b.book = nil
}

// orphan has nobody want the outcome of a bucket's call.
func (c *core) orphan(b *bucket) {
	c.ops[b.op] = &bucket{rule: b.rule, renews: b.renews, gone: true}
	b.op = 0
}

// forget forgets a bucket.
func (c *core) forget(b *bucket) {
	c.end(b)
	c.drop(b)
	delete(c.streams[b.stream], b.name)
	c.count--
}

func (c *core) giveBack(r Return) { c.out.Returns = append(c.out.Returns, r) }

// tell tells a verdict without a share.
func (c *core) tell(b *bucket, now time.Duration, v verdict, ttl time.Duration) {
	b.told, b.verdict = now, v
	c.out.Assigned = append(c.out.Assigned, assignment{Stream: b.stream, Bucket: b.name, Verdict: v, TTL: ttl})
}

// longestOf is the longest period of a rule, before the terms of its entity are known.
func longestOf(m *rules.Match) time.Duration { return longest(&m.Terms) }

// wants is the share that a bucket should have. While tokens lack, buckets of an entity have
// equal parts at most.
func (c *core) wants(b *bucket, now time.Duration) int64 {
	period := longestOf(b.rule)
	if b.book != nil {
		period = b.book.period
	}
	want := b.demand.wants(period, b.rule.Limit)
	if e := c.shared[b.rule.Entity]; e.refused > 0 && now-e.refused < 3*c.cfg.TTL {
		n := int64(e.buckets)
		want = min(want, max(1, (b.rule.Limit+n-1)/n))
	}
	return cmp.Or(want, 1)
}

// least is the smallest growth that is worth a lease, by the share that a bucket has.
func least(kind rates.Kind, tokens int64) int64 {
	if kind == rates.Window {
		return max(2, tokens/8)
	}
	return max(1, tokens/8)
}
