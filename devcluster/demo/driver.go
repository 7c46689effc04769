package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
)

const (
	// showEvery is the interval between two views. The books are read twice as often.
	showEvery = time.Second
	// readTimeout bounds a read of the books.
	readTimeout = 5 * time.Second
	// retryEvery is the pause before a failed step is tried again.
	retryEvery = 100 * time.Millisecond
)

// driver makes the demo's load on a cluster and checks the cluster. It reaches the
// cluster only by the addresses of its app managers.
type driver struct {
	opts      *Options
	plan      plan
	regions   []load.Region
	transport http.RoundTripper // nil: the default transport

	failure *failure // nil: no node is killed

	mu    sync.Mutex
	news  []string         // what happened to nodes
	reads []httpapi.Status // the last reads of the books, in the order of the nodes
	peak  []int64          // highest holdings seen of each region
}

// newDriver returns a driver. addrs are the app managers' addresses, in the order of
// [Regions].
func newDriver(opts *Options, transport http.RoundTripper, addrs []string) *driver {
	d := &driver{opts: opts, plan: opts.plan(), transport: transport}
	d.reads = make([]httpapi.Status, len(d.plan.nodes))
	for i, r := range Regions() {
		d.regions = append(d.regions, load.Region{
			Name: r, Addr: addrs[i], Target: holdings(d.plan.curve, opts.Day, i, len(Regions())),
		})
	}
	return d
}

// drive creates the entities, makes load, waits until the books have settled and returns
// the result.
func (d *driver) drive(ctx context.Context) (*Result, error) {
	client, err := d.newClient()
	if err != nil {
		return nil, err
	}
	if err := d.create(ctx, client); err != nil {
		return nil, err
	}
	l, err := load.New(load.Config{
		Entities: d.plan.entities, Regions: d.regions, Rate: d.opts.Rate, MaxTokens: maxTokens(d.plan.limit),
		Seed: d.opts.Seed, RequestPrefix: prefix(time.Now()), Transport: d.transport,
	})
	if err != nil {
		return nil, err
	}
	d.peak = make([]int64, len(d.regions))
	say(d.opts, "making load: %s requests a second, a day takes %s", decimal(d.opts.Rate), d.opts.Day)
	took, err := d.load(ctx, client, l)
	if err != nil {
		return nil, err
	}
	settled, err := d.settle(ctx, client)
	if err != nil {
		return nil, err
	}
	return d.result(l, took, settled), nil
}

// create creates the entities, level by level, and waits until every region's app
// manager knows them.
func (d *driver) create(ctx context.Context, client *httpapi.Client) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	ids := prefix(time.Now())
	for l := range levels {
		if n := d.plan.count(l); len(d.plan.nodes) > 1 {
			say(d.opts, "creating %d %s", n, l)
		}
		err := d.each(func(i int, n *node) error {
			if n.level != l {
				return nil
			}
			return d.createOne(ctx, client, n, fmt.Sprintf("%screate-%d", ids, i))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls f for all nodes at once and joins the errors.
func (d *driver) each(f func(i int, n *node) error) error {
	errs := make([]error, len(d.plan.nodes))
	var all sync.WaitGroup
	for i := range d.plan.nodes {
		all.Go(func() { errs[i] = f(i, &d.plan.nodes[i]) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// createOne creates an entity and waits until every region's app manager knows it.
func (d *driver) createOne(ctx context.Context, client *httpapi.Client, n *node, id string) error {
	// All attempts have the same id, so that no attempt fails because the entity exists.
	err := retry(ctx, func() error {
		_, err := client.Create(ctx, httpapi.Creation{Name: n.name, Limit: n.limit, Parent: n.parent, RequestID: id})
		return err
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", n.name, err)
	}
	for _, r := range d.regions {
		regional, err := httpapi.New(r.Addr, d.transport)
		if err != nil {
			return err
		}
		err = retry(ctx, func() error {
			status, err := regional.GetEntity(ctx, n.name)
			if err == nil && (!status.Complete || status.InTransit != 0) {
				err = errors.New("not every site has it yet")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("create %s: read it in %s: %w", n.name, r.Name, err)
		}
	}
	return nil
}

// retry repeats f until it succeeds or ctx is done. An error that time does not change
// ends the repeats.
func retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || errors.Is(err, apierr.EntityExists) || errors.Is(err, apierr.InvalidField) {
			return err
		}
		timer := time.NewTimer(retryEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		}
	}
}

// load makes load for the demo's duration, shows it, and returns how long it took.
func (d *driver) load(ctx context.Context, client *httpapi.Client, l *load.Load) (time.Duration, error) {
	watching, stopWatching := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	begun := time.Now()
	watchers.Go(func() { d.poll(watching, client) })
	watchers.Go(func() { d.watch(watching, l, begun) })
	if d.failure != nil {
		watchers.Go(func() { d.failure.run(watching, d.opts.Duration/2, d.tell) })
	}
	defer watchers.Wait()
	defer stopWatching()

	stop := make(chan struct{})
	var took time.Duration
	end := time.AfterFunc(d.opts.Duration, func() {
		took = time.Since(begun)
		close(stop)
	})
	defer end.Stop()
	if err := l.Run(ctx, stop); err != nil {
		return 0, fmt.Errorf("make load: %w", err)
	}
	return took, nil
}

// tell notes an event of a node, for the screen.
func (d *driver) tell(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news = append(d.news, text)
}

// poll reads the books until ctx is done.
func (d *driver) poll(ctx context.Context, client *httpapi.Client) {
	tick := time.NewTicker(showEvery / 2)
	defer tick.Stop()
	for {
		reading, cancel := context.WithTimeout(ctx, readTimeout)
		// After an error the view shows the former read.
		_ = d.readAll(reading, client)
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// readAll reads and keeps the books of all entities. It returns an error for each
// unsettled entity: a site does not answer, or tokens are between sites.
func (d *driver) readAll(ctx context.Context, client *httpapi.Client) error {
	return d.each(func(i int, n *node) error {
		status, err := client.GetEntity(ctx, n.name)
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.reads[i] = status
		d.mu.Unlock()
		if !status.Complete || status.InTransit != 0 {
			return fmt.Errorf("%s: complete %t, in transit %d", n.name, status.Complete, status.InTransit)
		}
		return nil
	})
}

// watch shows the load until ctx is done.
func (d *driver) watch(ctx context.Context, l *load.Load, begun time.Time) {
	s := &screen{w: d.opts.progress(), terminal: d.opts.Terminal}
	// A lost terminal is no reason to stop; the result has all numbers.
	defer func() { _ = s.close() }()
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	before, since := l.Window(), begun
	var shown *view
	for {
		var last bool
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		now := time.Now()
		v := d.view(l, before, now.Sub(since), now.Sub(begun))
		if last {
			if s.drawn == 0 {
				return
			}
			// The rest of the last second is too short for rates.
			v.phase = ""
			v.keepRates(shown)
		}
		if err := s.show(v); err != nil || last {
			return
		}
		before, since, shown = v.stats, now, v
	}
}

// view returns the view to show, and notes the peaks.
func (d *driver) view(l *load.Load, before load.Stats, window, elapsed time.Duration) *view {
	stats := l.Window()
	d.mu.Lock()
	defer d.mu.Unlock()
	v := &view{
		entity: d.opts.Entity, limit: d.plan.limit, read: d.sum(), stats: stats,
		redistributions: d.redistributions(), elapsed: elapsed, remaining: d.opts.Duration - elapsed,
		total: perSecond(stats.Total, before.Total, window), news: slices.Clone(d.news),
	}
	if elapsed > d.opts.Duration {
		v.phase = "   settling"
	}
	for i, r := range stats.Regions {
		v.rates = append(v.rates, perSecond(r.Counts, before.Regions[i].Counts, window))
		d.peak[i] = max(d.peak[i], r.Held)
	}
	if d.plan.workload == Hierarchy {
		v.plan, v.rows = &d.plan, d.rows(l.Ledger(), stats.Lacked)
	}
	return v
}

func perSecond(now, before load.Counts, window time.Duration) rates {
	s := max(window, time.Millisecond).Seconds()
	return rates{
		requests: float64(now.Requests-before.Requests) / s,
		grants:   float64(now.Granted-before.Granted) / s,
	}
}

// settle waits until every site answers and no token is between sites, and keeps the
// last read. It reports false if the books do not settle within settleTimeout.
func (d *driver) settle(ctx context.Context, client *httpapi.Client) (bool, error) {
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := retry(waiting, func() error { return d.readAll(waiting, client) })
	if ctx.Err() != nil {
		return false, fmt.Errorf("read the books: %w", ctx.Err())
	}
	return err == nil, nil
}

// result returns the result of the load.
func (d *driver) result(l *load.Load, took time.Duration, settled bool) *Result {
	stats := l.Stats()
	book := l.Ledger()
	read := d.sum()
	r := &Result{
		Granted: stats.Total.Granted, Refused: stats.Total.Refused, Requests: stats.Total.Requests,
		Redistributions: d.redistributions(),
		P50MS:           milliseconds(stats.Latency.P50), P99MS: milliseconds(stats.Latency.P99),
		Limit: d.plan.limit, MaxAcquired: book.MaxAcquired(d.plan.total).Tokens,
		AcquiredLedger: book.Held(d.plan.total), AcquiredBooks: read.Acquired,
		UnknownResolved: stats.Total.Resolved,
		DurationS:       took.Round(time.Millisecond).Seconds(),
		entity:          d.opts.Entity, total: stats.Total,
	}
	if d.plan.workload == Hierarchy {
		r.plan, r.Entities = &d.plan, d.rows(book, stats.Lacked)
	}
	r.RPS = round(float64(r.Requests)/r.DurationS, 10)
	r.RedistributionsPerMinute = round(float64(r.Redistributions)/(r.DurationS/60), 10)
	for i, g := range stats.Regions {
		r.regions = append(r.regions, regionResult{RegionStats: g, peak: max(d.peak[i], g.Held)})
	}
	r.judge(settled, stats.Total.Unresolved)
	return r
}

// sum returns the read of the only entity, or the sum of the organisations' reads: each
// token counts once.
func (d *driver) sum() httpapi.Status {
	if d.plan.workload != Hierarchy {
		return d.reads[0]
	}
	sum := httpapi.Status{Complete: true}
	at := make(map[string]int)
	for i, s := range d.reads {
		top := d.plan.nodes[i].level == org
		if top {
			sum.Available += s.Available
			sum.Acquired += s.Acquired
			sum.InTransit += s.InTransit
		}
		sum.Complete = sum.Complete && s.Complete
		for _, share := range s.Shares {
			k, ok := at[share.Site]
			if !ok {
				k = len(sum.Shares)
				at[share.Site] = k
				sum.Shares = append(sum.Shares, httpapi.Share{Site: share.Site, Known: true})
			}
			to := &sum.Shares[k]
			if top {
				to.Left += share.Left
				to.Net += share.Net
			}
			to.Known = to.Known && share.Known
			to.Waiting += share.Waiting
			to.Redistributions += share.Redistributions
			to.Transfers += share.Transfers
		}
	}
	return sum
}

// redistributions returns the redistributions of all entities.
func (d *driver) redistributions() uint64 {
	var n uint64
	for _, s := range d.reads {
		n += redistributions(s)
	}
	return n
}

// rows returns the entities with their numbers in the ledger and in the books.
func (d *driver) rows(book *ledger.Ledger, lacked map[string]uint64) []EntityResult {
	rows := make([]EntityResult, len(d.plan.nodes))
	for i, n := range d.plan.nodes {
		rows[i] = EntityResult{
			Name: n.name, Parent: n.parent, Limit: n.limit, MaxAcquired: book.MaxAcquired(n.name).Tokens,
			AcquiredLedger: book.Held(n.name), AcquiredBooks: d.reads[i].Acquired, Refused: lacked[n.name],
			shares: d.reads[i].Shares,
		}
	}
	return rows
}
