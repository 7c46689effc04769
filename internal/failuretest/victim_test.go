package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ledger"
	"github.com/samya-db/samya/internal/proc"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// phase is what a victim is busy with when it is hit.
type phase uint8

const (
	bootstrap phase = iota
	startUp
	acquires
	releases
	redistributions
	changes
	phases
)

func (p phase) String() string {
	return [...]string{"bootstrap", "start-up", "acquires", "releases", "redistributions", "catalogue changes"}[p]
}

// victimLimit is the limit of a victim's entity. It is high enough for a phase
// of plain acquires to be served from what the victim holds.
const victimLimit = 3000

// victim is the first site of a cluster of three, whose ends it survives on the
// same data, and the clients who keep what was acknowledged.
type victim struct {
	t       *testing.T
	cluster *proc.Cluster
	site    *proc.Process
	clients []*client
	prefix  string
	chains  []*chain
	dir     string
	started bool // the entity is there

	mu   sync.Mutex
	next int
	held int64
	left int64 // as of the site's last answer
	// unchecked are the answers of the victim that were not asked for again
	// since; given are all answers of all sites.
	unchecked, given []given
	unknown          []given
	// answered tells that the victim has answered since its start.
	answered bool
	counts   victimCounts
}

// victimCounts is what a victim's clients have seen.
type victimCounts struct {
	granted, released, refused, changed, unknown, lost int
}

func (c *victimCounts) add(o victimCounts) {
	c.granted += o.granted
	c.released += o.released
	c.refused += o.refused
	c.changed += o.changed
	c.unknown += o.unknown
	c.lost += o.lost
}

// acknowledged is how many operations were answered as done.
func (c victimCounts) acknowledged() int { return c.granted + c.released + c.changed }

// newVictim starts a cluster whose sites speak a protocol, and stops the first
// of them.
func newVictim(t *testing.T, protocol string, sites ...string) *victim {
	t.Helper()
	cluster := start(t, proc.Config{
		Sites:    sites,
		SiteArgs: []string{"--request-retention", "2h", "--protocol", protocol},
	})
	v := &victim{t: t, cluster: cluster, site: cluster.Site(0), clients: dialAll(t, cluster), prefix: protocol, dir: t.TempDir()}
	v.chains = []*chain{{name: "acme/one", by: v.clients[0]}, {name: "acme/two", by: v.clients[len(v.clients)-1]}}
	kill(t, v.site)
	return v
}

// round hits the site once, from its start on, with callers who make it busy,
// and returns where it was. The site is down afterwards; ok is false if its
// first start went by unhit.
func (v *victim) round(number int, load phase, in injection) (h hit, ok bool) {
	t := v.t
	t.Helper()
	output := filepath.Join(v.dir, fmt.Sprintf("trace-%t-%d", v.started, number))
	in.under(v.site, output)
	v.answered = false
	if err := v.site.Start(); err != nil {
		t.Fatal(err)
	}
	pid := v.site.PID()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	if v.started {
		v.work(ctx, &all, load)
	}
	ended, err := v.expectEnd()
	cancel()
	all.Wait()
	switch {
	case !ended && !v.started:
		return hit{}, false
	case !ended:
		t.Fatalf("the site still runs: %s did not hit it in %s", in, patience)
	}
	if err := in.endedBy(err); err != nil {
		t.Fatalf("%s, %s: %v:\n%s", in, load, err, v.site.Tail(5))
	}
	h.phase = load
	calls, err := parseTrace(traceOf(t, output, pid))
	if err != nil {
		t.Fatal(err)
	}
	calls = onDatabase(calls)
	if in.errno == "" {
		h.point, err = pointOf(calls, in)
	} else {
		h.point, err = failedAt(calls)
	}
	if err != nil {
		t.Fatalf("%s, %s: %v", in, load, err)
	}
	switch {
	case !v.started:
		h.phase = bootstrap
	case !v.answered:
		h.phase = startUp
	}
	h.open = v.started && instanceOpen(t, v.site.Data)
	return h, true
}

// firstStart is how often a first start is tried: which thread makes its few
// calls is not the same each time.
const firstStart = 10

// first hits the site on an empty directory. It has to be alone: others would
// know it for one that has lost its data.
func (v *victim) first(number int, in injection) hit {
	t := v.t
	t.Helper()
	for try := range firstStart {
		kill(t, v.site)
		if err := os.RemoveAll(v.site.Data); err != nil {
			t.Fatal(err)
		}
		if h, ok := v.round(number*firstStart+try, startUp, in); ok {
			return h
		}
	}
	t.Fatalf("%s hit none of %d first starts", in, firstStart)
	return hit{}
}

// hit is where a site was when it was hit.
type hit struct {
	point point
	phase phase
	// open tells that the site took part in an instance that it had not applied.
	open bool
}

// expectEnd waits for the site's end and returns how it ended. A first start
// has made all its calls once the site is ready.
func (v *victim) expectEnd() (ended bool, err error) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	if !v.started && v.site.WaitReady(ctx) == nil {
		return false, nil
	}
	select {
	case death := <-v.cluster.Deaths():
		if death.Process != v.site {
			v.t.Fatalf("the wrong process ended: %v", death)
		}
		return true, death.Err
	case <-ctx.Done():
		return false, nil
	}
}

// failedAt tells which part of a commit the first call was that failed. Answers
// to what was durable before may still be on their way then; that no other
// leaves is for a test with one request at a time.
func failedAt(calls []systemCall) (point, error) {
	for i, c := range calls {
		if c.failed {
			return partOf(calls[:i+1]), nil
		}
	}
	return 0, errNoPoint
}

// work starts the callers of a round: first what was acknowledged before is
// asked for again, and what has no outcome is settled, then comes the load.
func (v *victim) work(ctx context.Context, all *sync.WaitGroup, load phase) {
	const callers = 6
	for range callers {
		all.Go(func() {
			v.read(ctx)
			for ctx.Err() == nil {
				if !v.settleOne(ctx) && !v.checkOne(ctx) {
					v.move(ctx, load)
				}
			}
		})
	}
	for _, c := range v.chains {
		all.Go(func() {
			c.ask(ctx, v)
			for ctx.Err() == nil && load == changes {
				c.step(ctx, v)
			}
		})
	}
	// The others give back what the victim granted, and take some: what is out
	// comes round.
	for range 2 {
		all.Go(func() {
			for wan.Wait(ctx, 3*time.Millisecond) == nil {
				v.moveElsewhere(ctx, load)
			}
		})
	}
}

// read waits until the victim answers and reads what it has.
func (v *victim) read(ctx context.Context) {
	resp, err := v.clients[0].GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity}, grpc.WaitForReady(true))
	if err != nil {
		return // it was hit before
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answered, v.left = true, resp.GetUsage().GetShares()[0].GetLeft()
}

// take removes one of a list; ok is false if it is empty.
func (v *victim) take(list *[]given) (g given, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(*list); n > 0 {
		g, *list = (*list)[n-1], (*list)[:n-1]
		return g, true
	}
	return given{}, false
}

func (v *victim) putBack(list *[]given, g given) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*list = append(*list, g)
}

// settleOne repeats a request that has no outcome; false: there is none.
func (v *victim) settleOne(ctx context.Context) bool {
	g, ok := v.take(&v.unknown)
	if !ok {
		return false
	}
	again := repeat(ctx, g.client, g.answer)
	if !binds(again) {
		v.putBack(&v.unknown, g)
		return true
	}
	v.book(given{g.client, again})
	return true
}

// binds reports whether an answer is one that the site has to give again.
func binds(a answer) bool { return a.reason == "" || a.reason == apierr.OutOfTokens }

// checkOne asks again for an answer that the victim gave before it was hit. A
// site that has lost the request would carry the repeat out, with the same
// answer maybe; so the id is first used for another request, which only a site
// that knows it refuses. False: there is none to be checked.
func (v *victim) checkOne(ctx context.Context) bool {
	g, ok := v.take(&v.unchecked)
	if !ok {
		return false
	}
	other := g.answer
	other.asked++
	probe, again := repeat(ctx, g.client, other), answer{reason: apierr.Canceled}
	if probe.reason == apierr.RequestIDReused {
		again = repeat(ctx, g.client, g.answer)
	}
	switch {
	case again == g.answer:
		v.saw(g.client, again)
	case binds(probe) || binds(again) || probe.reason == apierr.EntityNotFound || again.reason == apierr.EntityNotFound:
		v.lose("%s answered %+v; the repeat %+v, and another request under its id %+v", g.client.site.Name, g.answer, again, probe)
	default:
		v.putBack(&v.unchecked, g) // the site is going down, or too busy
	}
	return true
}

func (v *victim) lose(format string, args ...any) {
	v.t.Errorf(format, args...)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts.lost++
}

func (v *victim) saw(c *client, a answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c == v.clients[0] {
		v.answered = true
		if a.reason == "" {
			v.left = a.left
		}
	}
}

// move makes one request of the load at the victim.
func (v *victim) move(ctx context.Context, load phase) {
	a := answer{kind: ledger.Acquire, asked: 1 + rand.Int64N(3)}
	v.mu.Lock()
	v.next++
	a.id = fmt.Sprintf("%s-%d", v.prefix, v.next)
	switch {
	case load == redistributions && rand.IntN(3) == 0:
		// More than it has, and no more than there is.
		a.asked = min(max(v.left, 0)+1+rand.Int64N(50), max(1, victimLimit-v.held))
	case load == releases && v.held >= a.asked || v.held >= victimLimit*3/4:
		a.kind = ledger.Release
		v.held -= a.asked
	}
	v.mu.Unlock()
	v.send(ctx, v.clients[0], a)
}

// moveElsewhere makes one request at another site.
func (v *victim) moveElsewhere(ctx context.Context, load phase) {
	a := answer{kind: ledger.Acquire, asked: 1 + rand.Int64N(20)}
	v.mu.Lock()
	v.next++
	a.id = fmt.Sprintf("%s-%d", v.prefix, v.next)
	if v.held > 100 && (load != releases || v.held > victimLimit/2) {
		a.kind, a.asked = ledger.Release, 1+rand.Int64N(v.held/4)
		v.held -= a.asked
	}
	v.mu.Unlock()
	v.send(ctx, v.clients[1+rand.IntN(len(v.clients)-1)], a)
}

// send makes a request that waits for tokens for less than the site needs to
// be up again, and books its answer.
func (v *victim) send(ctx context.Context, c *client, a answer) {
	if c == v.clients[0] {
		v.book(given{c, send(ctx, c, a, 300*time.Millisecond)})
		return
	}
	// The others stay up; what they answer is not lost with the victim.
	v.book(given{c, send(context.WithoutCancel(ctx), c, a, 300*time.Millisecond)})
}

// book counts an answer; what has none is kept to be settled.
func (v *victim) book(g given) {
	if binds(g.answer) {
		v.saw(g.client, g.answer)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	a := g.answer
	release := a.kind == ledger.Release
	switch {
	case !binds(a) && a.reason.NothingDone():
		if release {
			v.held += a.asked
		}
		return
	case !binds(a):
		v.counts.unknown++
		v.unknown = append(v.unknown, g)
		return
	case a.reason != "":
		v.counts.refused++
	case release:
		v.counts.released++
	default:
		v.counts.granted++
		v.held += a.tokens
	}
	v.given = append(v.given, g)
	if g.client == v.clients[0] {
		v.unchecked = append(v.unchecked, g)
	}
}

// begin starts the site for good, and creates the entity.
func (v *victim) begin() {
	v.t.Helper()
	v.site.Under = nil
	restart(v.t, v.site)
	create(v.t, victimLimit, v.clients...)
	v.started = true
	kill(v.t, v.site)
}

// end starts the site for good and checks all that was ever acknowledged.
func (v *victim) end() {
	t := v.t
	t.Helper()
	v.site.Under = nil
	restart(t, v.site)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for _, c := range v.chains {
		c.ask(ctx, v)
	}
	until(ctx, v.settleOne)
	v.unchecked = append([]given(nil), v.given...)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { until(ctx, v.checkOne) })
	}
	all.Wait()
	if n := len(v.unknown) + len(v.unchecked); n != 0 {
		t.Fatalf("%d answers are not had again in %s", n, 2*patience)
	}
	settled(t, victimLimit, v.held, v.clients...)
}

// until calls what reports whether there was anything to do, until there is not
// or ctx ends.
func until(ctx context.Context, one func(context.Context) bool) {
	for ctx.Err() == nil {
		if !one(ctx) {
			return
		}
	}
}
