package quota

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
)

// A simulation of proxies, an app manager that is killed, and a site that starts anew. Time goes
// in steps. Proxies do as Envoy's filter does: the same token bucket again extends its time,
// another begins full, and an assignment that is over refuses all. They let as many requests
// pass as they may. So does the site, for other clients.

const simStep = 50 * time.Millisecond

// simSite is a site that leases shares, as site/core does.
type simSite struct {
	kind   rates.Kind
	limit  int64
	period time.Duration
	// left is in tokens times the period.
	left   int64
	leases map[string]*simLease
	// ended are tokens of ended leases of a window, by the window in which they come back.
	ended  map[int64]int64
	window int64
	number int
}

type simLease struct {
	tokens int64
	until  time.Duration
	stream streamID
}

func (s *simSite) held() (sum int64) {
	for _, l := range s.leases {
		sum += l.tokens
	}
	return sum
}

// pass has a step of time pass.
func (s *simSite) pass(now time.Duration) {
	p := int64(s.period)
	if s.kind == rates.Bucket {
		s.left = min((s.limit-s.held())*p, s.left+(s.limit-s.held())*int64(simStep))
	} else if w := int64(now / s.period); w > s.window {
		s.window = w
		out := int64(0)
		for back, n := range s.ended {
			if back > w {
				out += n
			} else {
				delete(s.ended, back)
			}
		}
		s.left = (s.limit - s.held() - out) * p
	}
	for name, l := range s.leases {
		if l.until <= now {
			s.end(name, l.tokens)
		}
	}
}

// take takes at most so many tokens.
func (s *simSite) take(n int64) int64 {
	n = max(0, min(n, s.left/int64(s.period)))
	s.left -= n * int64(s.period)
	return n
}

func (s *simSite) lease(now time.Duration, tokens int64, ttl time.Duration, stream streamID) (string, int64) {
	if tokens = s.take(tokens); tokens == 0 {
		return "", 0
	}
	s.number++
	name := fmt.Sprint("us/", s.number)
	s.leases[name] = &simLease{tokens, now + ttl, stream}
	return name, tokens
}

// end ends a lease, or gives back a part of it.
func (s *simSite) end(name string, tokens int64) {
	l := s.leases[name]
	if l == nil {
		return
	}
	if tokens == 0 {
		tokens = l.tokens
	}
	tokens = min(tokens, l.tokens)
	if l.tokens -= tokens; l.tokens == 0 {
		delete(s.leases, name)
	}
	if s.kind == rates.Window {
		s.ended[s.window+2] += tokens
	}
}

// restart has leases end early, as after a wall clock that was set ahead.
func (s *simSite) restart() {
	for _, l := range s.leases {
		l.until -= skew
	}
}

// simProxy is a proxy.
type simProxy struct {
	stream streamID
	// open says that the stream is there, back when it is opened again.
	open bool
	back time.Duration
	// bucket is the token bucket in force until a time; level is in tokens times its interval.
	bucket tokenBucket
	until  time.Duration
	level  int64
	// source is the stream that assigned it.
	source streamID
	seen   int64
	report time.Duration
	// demand is how many requests come in a step, in thousandths.
	demand int64
	// got are messages under way; a killed stream loses them or not.
	got []simMessage
	// allowed counts what passed.
	allowed int64
}

type simMessage struct {
	at time.Duration
	a  assignment
}

// receive takes up an assignment.
func (p *simProxy) receive(now time.Duration, a assignment) {
	p.source = a.Stream
	switch {
	case a.Verdict != share:
		p.bucket, p.until = tokenBucket{}, 0
	case now < p.until && a.Tokens == p.bucket:
		p.until = now + a.TTL
	default:
		p.bucket, p.until = a.Tokens, now+a.TTL
		p.level = a.Tokens.Max * int64(a.Tokens.Interval)
	}
}

// pass has a step of time pass, and returns how many requests the proxy lets pass.
func (p *simProxy) pass(now time.Duration, requests int64) int64 {
	p.seen += requests
	if now >= p.until || p.bucket.Max == 0 {
		p.bucket, p.until = tokenBucket{}, 0
		return 0
	}
	i := int64(p.bucket.Interval)
	p.level = min(p.bucket.Max*i, p.level+p.bucket.Fill*int64(simStep))
	n := min(requests, p.level/i)
	p.level -= n * i
	p.allowed += n
	return n
}

type simCall struct {
	at, asked time.Duration
	acquire   *acquisition
	renewal   *renewal
	back      *Return
	stream    streamID
}

type simGrant struct {
	at     time.Duration
	tokens int64
}

type sim struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	now     time.Duration
	site    *simSite
	core    *core
	cfg     Config
	rule    *rules.Match
	proxies []*simProxy
	calls   []simCall
	last    streamID
	granted []simGrant
	// levels are the levels of the buckets that the holders of leases have by their rule.
	levels  map[streamID]int64
	faults  bool
	started time.Duration
	out     time.Duration
}

func newSim(t *testing.T, seed uint64, kind rates.Kind, proxies int, limit int64, faults bool) *sim {
	t.Helper()
	period := time.Minute
	terms := rates.Terms{Kind: kind, Count: 1, Unit: rates.Minute}
	rng := rand.New(rand.NewPCG(seed, 7))
	if rng.IntN(2) == 0 {
		period, terms.Unit = time.Second*10, rates.Second
		terms.Count = 10
	}
	s := &sim{
		t: t, seed: seed, rng: rng, now: time.Hour, faults: faults, cfg: Config{TTL: 20 * time.Second, MaxBuckets: 100, MaxOfStream: 10},
		levels: map[streamID]int64{},
		rule:   &rules.Match{Entity: "e", Limit: limit, Terms: terms},
		site:   &simSite{kind: kind, limit: limit, period: period, left: limit * int64(period), leases: map[string]*simLease{}, ended: map[int64]int64{}, window: int64(time.Hour / period)},
	}
	s.core = newCore(s.cfg)
	for range proxies {
		s.proxies = append(s.proxies, &simProxy{back: s.now})
	}
	return s
}

// drain carries out effects.
func (s *sim) drain() {
	out := s.core.Drain()
	delay := func(most time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(most))) }
	latency := 300 * time.Millisecond
	if s.faults && s.rng.IntN(20) == 0 {
		latency = 4 * time.Second
	}
	for _, a := range out.Acquires {
		s.calls = append(s.calls, simCall{at: s.now + delay(latency), asked: s.now, acquire: &a, stream: s.core.ops[a.Op].stream})
	}
	for _, r := range out.Renewals {
		s.calls = append(s.calls, simCall{at: s.now + delay(latency), asked: s.now, renewal: &r})
	}
	for _, r := range out.Returns {
		s.calls = append(s.calls, simCall{at: s.now + delay(latency), asked: s.now, back: &r})
	}
	for _, a := range out.Assigned {
		for _, p := range s.proxies {
			if p.open && p.stream == a.Stream {
				at := s.now + delay(way)
				if n := len(p.got); n > 0 {
					at = max(at, p.got[n-1].at)
				}
				p.got = append(p.got, simMessage{at, a})
			}
		}
	}
}

// run carries out a call of the site.
func (s *sim) run(c simCall) {
	fails := s.faults && (s.rng.IntN(25) == 0 || s.now < s.out)
	switch {
	case c.back != nil:
		if !fails {
			s.site.end(c.back.Lease, c.back.Tokens)
		}
	case c.acquire != nil:
		// An answer that is lost leaves a lease that nobody knows of.
		name, tokens := s.site.lease(s.now, c.acquire.Tokens, s.cfg.LeaseTTL(), c.stream)
		s.levels[c.stream] += tokens * int64(s.site.period)
		switch {
		case fails:
			s.core.Refused(s.now, c.acquire.Op, noAnswer)
		case tokens == 0:
			s.core.Refused(s.now, c.acquire.Op, noTokens)
		default:
			s.core.Acquired(s.now, c.asked, c.acquire.Op, Granted{Lease: name, Tokens: tokens, Remaining: s.cfg.LeaseTTL(), Terms: s.rule.Terms})
		}
	default:
		l := s.site.leases[c.renewal.Lease]
		switch {
		case fails:
			s.core.Unrenewed(s.now, c.renewal.Op, false)
		case l == nil:
			s.core.Unrenewed(s.now, c.renewal.Op, true)
		default:
			l.until = s.now + s.cfg.LeaseTTL()
			s.core.Renewed(s.now, c.asked, c.renewal.Op, s.cfg.LeaseTTL())
		}
	}
}

// close ends the stream of a proxy. What is under way may still come.
func (s *sim) close(p *simProxy, again time.Duration) {
	if p.open {
		p.open, p.back = false, s.now+again
		s.core.Closed(p.stream)
		if s.rng.IntN(2) == 0 {
			p.got = nil
		}
	}
}

// fault has something go wrong now and then.
func (s *sim) fault() {
	switch s.rng.IntN(1500) {
	case 0: // the app manager is killed
		for _, p := range s.proxies {
			p.open, p.back = false, s.now+time.Duration(s.rng.Int64N(int64(8*time.Second)))
		}
		s.core, s.calls = newCore(s.cfg), nil
	case 1:
		// Clocks that are set ahead again and again are not allowed for.
		if s.now-s.started > time.Minute {
			s.site.restart()
			s.started = s.now
		}
	case 2, 3, 4:
		s.close(s.proxies[s.rng.IntN(len(s.proxies))], time.Duration(s.rng.Int64N(int64(30*time.Second))))
	case 5: // a proxy starts anew, and knows nothing
		p := s.proxies[s.rng.IntN(len(s.proxies))]
		s.close(p, time.Second)
		p.got, p.bucket, p.until = nil, tokenBucket{}, 0
	case 6, 7: // reports stay away
		s.proxies[s.rng.IntN(len(s.proxies))].report += time.Duration(s.rng.Int64N(int64(38 * time.Second)))
	case 8: // the site answers late, or not
		s.out = s.now + time.Duration(s.rng.Int64N(int64(25*time.Second)))
	}
}

func (s *sim) grant(n int64) {
	if n > 0 {
		s.granted = append(s.granted, simGrant{s.now, n})
	}
}

// step has a step of time pass. others is how many requests of others the site gets.
func (s *sim) step(others int64) {
	s.now += simStep
	s.site.pass(s.now)
	shares := map[streamID]int64{}
	for _, l := range s.site.leases {
		shares[l.stream] += l.tokens
	}
	for stream, level := range s.levels {
		// A step more, as a proxy looks at its clock within one.
		s.levels[stream] = min(shares[stream]*int64(s.site.period+simStep), level+shares[stream]*int64(simStep))
	}
	if s.faults {
		s.fault()
	}
	calls := s.calls
	s.calls = nil
	for _, c := range calls {
		if c.at > s.now {
			s.calls = append(s.calls, c)
			continue
		}
		s.run(c)
		s.drain()
	}
	s.grant(s.site.take(others))
	for _, p := range s.proxies {
		s.proxy(p)
	}
	if s.now%tickTime == 0 {
		s.core.Tick(s.now)
		s.drain()
	}
	s.check()
}

func (s *sim) proxy(p *simProxy) {
	for len(p.got) > 0 && p.got[0].at <= s.now {
		p.receive(s.now, p.got[0].a)
		p.got = p.got[1:]
	}
	requests := p.demand / 1000
	if s.rng.Int64N(1000) < p.demand%1000 {
		requests++
	}
	n := p.pass(s.now, requests)
	s.grant(n)
	if s.levels[p.source] -= n * int64(s.site.period); n > 0 && s.levels[p.source] < 0 {
		s.t.Fatalf("seed %d: at %v a proxy has granted more than its leases allow", s.seed, s.now)
	}
	if !p.open && s.now >= p.back {
		s.last++
		p.stream, p.open, p.report = s.last, true, s.now
	}
	if p.open && s.now >= p.report {
		p.report = s.now + 5*time.Second
		s.core.Report(s.now, p.stream, []usage{{Bucket: "b", Rule: s.rule, Requests: p.seen}})
		p.seen = 0
		s.drain()
	}
}
