package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/httpapi"
)

// The steering of a region's holdings. A region leanOver tokens or more from its target
// moves towards it as fast as churn allows. churn is the share of requests of the other
// kind even then.
const (
	leanOver = 60.0
	churn    = 0.03
)

// The range and precision of the latencies kept.
const (
	minLatency       = time.Microsecond
	maxLatency       = 2 * time.Minute
	latencyPrecision = 3
)

// holding is a region's clients' tokens of an entity.
type holding struct {
	Entity
	upTo      float64 // the sum of the shares up to this entity's, of 1
	held      int64   // acquired and not given out to a release
	acquiring int64   // asked for by acquires under way
}

// region is the clients of one region.
type region struct {
	cfg      *Config
	name     string
	site     string
	target   func(time.Duration) float64
	client   *httpapi.Client
	start    time.Time
	sequence atomic.Uint64
	unknowns sync.WaitGroup

	mu       sync.Mutex
	rng      *rand.Rand
	holdings []holding // in the order of the entities
	counts   Counts
	lacked   map[string]uint64       // refusals by the entity that lacked the tokens
	latency  *hdrhistogram.Histogram // of all requests answered
	window   *hdrhistogram.Histogram // of the requests answered since the last Window
}

func newRegion(cfg *Config, r Region, client *httpapi.Client, rng *rand.Rand) *region {
	histogram := func() *hdrhistogram.Histogram {
		return hdrhistogram.New(minLatency.Microseconds(), maxLatency.Microseconds(), latencyPrecision)
	}
	return &region{
		cfg: cfg, name: r.Name, site: r.Site, target: r.Target, client: client, rng: rng,
		holdings: holdings(cfg.Entities), lacked: make(map[string]uint64), latency: histogram(), window: histogram(),
	}
}

// holdings returns the holdings of a region without tokens.
func holdings(entities []Entity) []holding {
	var sum, upTo float64
	for _, e := range entities {
		sum += e.Share
	}
	hs := make([]holding, len(entities))
	for i, e := range entities {
		e.Share /= sum
		upTo += e.Share
		hs[i] = holding{Entity: e, upTo: upTo}
	}
	return hs
}

// request is an acquire or a release.
type request struct {
	of     *holding
	kind   ledger.Kind
	tokens int64
	id     string
	due    time.Time
	booked booking
}

// booking is a request in the ledger: for its entity, then for each above it.
type booking []*ledger.Op

// invoke books that a request is about to be sent.
func (r *region) invoke(e *Entity, kind ledger.Kind, tokens int64) booking {
	b := booking{r.cfg.Ledger.Invoke(e.Name, kind, tokens)}
	for _, above := range e.Above {
		b = append(b, r.cfg.Ledger.Invoke(above, kind, tokens))
	}
	return b
}

func (b booking) end(o ledger.Outcome) {
	for _, op := range b {
		op.Return(o)
	}
}

func (b booking) unknown() {
	for _, op := range b {
		op.Unknown()
	}
}

func (b booking) resolve(o ledger.Outcome) {
	for _, op := range b {
		op.Resolve(o)
	}
}

// run makes the region's load; see [Load.Run].
func (r *region) run(ctx context.Context, stop <-chan struct{}, start time.Time, rate float64) {
	r.mu.Lock()
	r.start = start
	r.mu.Unlock()
	arrivals := make(chan time.Time, r.cfg.InFlight/4+1)
	var workers sync.WaitGroup
	for range r.cfg.InFlight {
		workers.Go(func() {
			for due := range arrivals {
				r.serve(ctx, r.next(due))
			}
		})
	}
	r.arrive(ctx, stop, start, rate, arrivals)
	close(arrivals)
	workers.Wait()
	r.unknowns.Wait()
}

// arrive hands out arrivals, at random intervals with the mean 1/rate, until
// stop is closed. An arrival that finds no free worker waits, and is shed if too
// many wait before it.
func (r *region) arrive(ctx context.Context, stop <-chan struct{}, start time.Time, rate float64, arrivals chan<- time.Time) {
	due := start
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.mu.Lock()
		due = due.Add(time.Duration(r.rng.ExpFloat64() / rate * float64(time.Second)))
		r.mu.Unlock()
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
		select {
		case arrivals <- due:
		default:
			r.count(func(c *Counts) { c.Shed++ })
		}
	}
}

// next chooses the request of an arrival and books it as invoked.
func (r *region) next(due time.Time) request {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.choose()
	tokens := 1 + r.rng.Int64N(r.cfg.MaxTokens)
	missing := h.Share*r.target(due.Sub(r.start)) - float64(h.held+h.acquiring)
	acquire := r.rng.Float64() < min(max(0.5+missing/(2*leanOver), churn), 1-churn)
	q := request{
		of: h, kind: ledger.Release, due: due,
		id: fmt.Sprintf("%s%s-%d", r.cfg.RequestPrefix, r.name, r.sequence.Add(1)),
	}
	if acquire || h.held == 0 {
		q.kind = ledger.Acquire
		h.acquiring += tokens
	} else {
		tokens = min(tokens, h.held)
		h.held -= tokens
	}
	q.tokens = tokens
	r.counts.Requests++
	r.counts.InFlight++
	q.booked = r.invoke(&h.Entity, q.kind, tokens)
	return q
}

// choose draws the entity of a request, each entity as often as its share says. A single
// entity takes no draw.
func (r *region) choose() *holding {
	last := len(r.holdings) - 1
	if last == 0 {
		return &r.holdings[0]
	}
	x := r.rng.Float64()
	for i := range r.holdings[:last] {
		if x < r.holdings[i].upTo {
			return &r.holdings[i]
		}
	}
	return &r.holdings[last]
}

// serve sends the request and books its outcome.
func (r *region) serve(ctx context.Context, q request) {
	outcome := r.send(ctx, q, r.site)
	if outcome.verdict == unknown {
		q.booked.unknown()
		r.count(func(c *Counts) {
			c.Unknown++
			c.Unresolved++
			c.LastError = outcome.text()
		})
		r.unknowns.Go(func() { r.pursue(ctx, q, outcome) })
		return
	}
	q.booked.end(outcome.verdict.booked())
	r.settle(q, outcome, true)
}

// send sends the request once, to be answered by site; empty: any.
func (r *region) send(ctx context.Context, q request, site string) answer {
	wait := max(r.cfg.Wait, 0)
	ctx, cancel := context.WithTimeout(ctx, wait+answerMargin)
	defer cancel()
	body := httpapi.Request{Tokens: q.tokens, RequestID: q.id, Site: site}
	var err error
	switch q.kind {
	case ledger.Acquire:
		body.Wait = wait.String()
		_, err = r.client.Acquire(ctx, q.of.Name, body)
	case ledger.Release:
		_, err = r.client.Release(ctx, q.of.Name, body)
	}
	return judge(err, site)
}

// settle adjusts holdings and counts to a known outcome. Only a first answer has a
// latency: the latency of a repeat says nothing about the cluster.
func (r *region) settle(q request, a answer, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	executed := a.verdict == executed
	switch q.kind {
	case ledger.Acquire:
		q.of.acquiring -= q.tokens
		if executed {
			q.of.held += q.tokens
		}
	case ledger.Release:
		if !executed {
			q.of.held += q.tokens
		}
	}
	switch {
	case executed && q.kind == ledger.Acquire:
		r.counts.Granted++
	case executed:
		r.counts.Released++
	case a.verdict == refused:
		r.counts.Refused++
		r.lacked[a.lacking]++
	default:
		r.counts.Failed++
		r.counts.LastError = a.text()
	}
	r.counts.InFlight--
	if first && a.verdict != failed {
		took := min(max(time.Since(q.due), minLatency), maxLatency).Microseconds()
		// The value is within the range of the histogram: recording it cannot fail.
		_ = r.latency.RecordValue(took)
		_ = r.window.RecordValue(took)
	}
}

// count changes the counts.
func (r *region) count(change func(*Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.counts)
}
