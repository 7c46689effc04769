package failuretest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/samya-db/samya/devcluster/proc"
)

// phase is the activity of a victim when it is hit.
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

// victimLimit is the limit of a victim's entity: high enough that the victim serves a
// phase of plain acquires from its own tokens.
const victimLimit = 3000

// victim is the first site of a cluster, which is hit and restarted on the same data, and
// the clients who keep the acknowledged requests.
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
	// unchecked are the victim's answers that no client has asked for again since; given
	// are all answers of all sites.
	unchecked, given []given
	unknown          []given
	// answered tells that the victim has answered since its start.
	answered bool
	counts   victimCounts
}

// victimCounts counts the answers that a victim's clients have seen.
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

// acknowledged is the number of operations that were answered as done.
func (c victimCounts) acknowledged() int { return c.granted + c.released + c.changed }

// shortLog has sites carry their log over to the database all the time.
var shortLog = []string{"--checkpoint-bytes", "8192", "--checkpoint-interval", "300ms"}

// newVictim starts a cluster of sites with a setup, and kills the first site.
func newVictim(t *testing.T, by setup, sites ...string) *victim {
	t.Helper()
	cluster := start(t, proc.Config{
		Sites:    sites,
		SiteArgs: append(append(by.args(), "--request-retention", "2h"), shortLog...),
	})
	v := &victim{t: t, cluster: cluster, site: cluster.Site(0), clients: dialAll(t, cluster), prefix: by.String(), dir: t.TempDir()}
	v.chains = []*chain{{name: "acme/one", by: v.clients[0]}, {name: "acme/two", by: v.clients[len(v.clients)-1]}}
	kill(t, v.site)
	return v
}

// round hits the site once, from its start on, with callers who make it busy, and returns
// the place of the hit. The site is down afterwards; ok is false if its first start went
// by unhit.
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
	calls = onData(calls)
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
	h.open = v.started && instanceOpen(t, v.site)
	h.transfer = v.started && transferOpen(t, v.site)
	return h, true
}

// firstStart is how often a first start is tried: which thread makes its few
// calls is not the same each time.
const firstStart = 10

// first hits the site on an empty directory. The site has to be alone: other sites would
// know that it has lost its data.
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

// hit is the place at which a site was hit.
type hit struct {
	point point
	phase phase
	// open tells that the site took part in an instance that it had not applied.
	open bool
	// transfer tells that it had sent tokens that were not acknowledged.
	transfer bool
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

// failedAt returns the point of the first failed call. Answers of commits that were
// durable before may still be on their way then. TestFailingDiskStopsTheSite shows that
// no other answer leaves.
func failedAt(calls []systemCall) (point, error) {
	for i, c := range calls {
		if c.failed {
			return partOf(calls[:i+1]), nil
		}
	}
	return 0, errNoPoint
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
