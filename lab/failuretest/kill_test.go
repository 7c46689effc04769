package failuretest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// regions are the regions of the paper's Table 5; each has a site and an app manager.
var regions = []string{"us", "as", "eu", "au", "sa"}

// day makes a region's holdings follow a compressed day, like the demo's day but higher.
// A site with a fifth of the tokens runs short every noon, and the regions together want
// all tokens.
func day(limit int64, length time.Duration, i, n int) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		sun := (1 + math.Cos(2*math.Pi*(t.Seconds()/length.Seconds()-float64(i)/float64(n)))) / 2
		return float64(limit) * (0.02 + 0.48*sun*sun)
	}
}

// TestKillUnderLoad kills sites in turn under a load that makes them redistribute, every
// second time while an instance is open there, and restarts them on their data. In the
// end the clients' ledger and the sites' books are the same, and the sites repeat a
// sample of their answers unchanged.
func TestKillUnderLoad(t *testing.T) {
	const limit = 5000
	rounds, wantOpen := pick(6, 30), pick(1, 5)
	sampled := pick(200, 1000)
	cluster := start(t, proc.Config{
		Sites: regions, AppManagers: regions, Latency: "samya",
		// No answer may be forgotten before it is asked for again.
		SiteArgs: []string{"--request-retention", "30m", "--strategy", "instance"},
	})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)

	seen := newAnswers()
	l, err := load.New(load.Config{
		Entities: load.One(entity), Rate: pick(300.0, 600.0), MaxTokens: 10, RequestPrefix: "kill-", ResolveFor: 2 * patience,
		Regions: loadRegions(cluster, limit), Transport: seen,
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- l.Run(t.Context(), stop) }()

	open := 0
	moments := []moment{anyTime, whileOffering, anyTime, whileWaiting}
	for round := range rounds {
		i := round % len(regions)
		open += killOnce(t, cluster.Site(i), clients[i], moments[round%len(moments)])
	}
	pause(t, time.Second)
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	seen.close()

	stats := l.Stats().Total
	if stats.Unresolved != 0 || stats.InFlight != 0 {
		t.Errorf("%d outcomes are still unknown, %d requests under way; last: %s", stats.Unresolved, stats.InFlight, stats.LastError)
	}
	checkLedger(t, cluster, l.Ledger(), limit)
	if peak := l.Ledger().MaxAcquired(entity); peak.Tokens > limit {
		t.Errorf("%d tokens were out after %s, the limit is %d", peak.Tokens, peak.At, limit)
	}
	for _, text := range seen.contradictions {
		t.Error(text)
	}
	repeated := repeatAnswers(t, limit, clients, seen, sampled)
	if open < wantOpen {
		t.Errorf("%d rounds with an open instance, want at least %d", open, wantOpen)
	}
	lost := lostCalls(t, cluster)
	if long() && lost == 0 {
		t.Error("no call was ever lost: nothing was under way when sites were killed")
	}
	if stats.Granted == 0 || stats.Released == 0 {
		t.Errorf("no load was made: %+v", stats)
	}
	report(t, figures{
		{"kills", rounds},
		{"open", open},
		{"requests", stats.Requests},
		{"acknowledged", stats.Granted + stats.Released},
		{"calls lost", lost},
		{"settled", stats.Resolved},
		{"max acquired", l.Ledger().MaxAcquired(entity).Tokens},
		{"limit", limit},
		{"answers repeated", repeated},
	})
	t.Logf("rounds %d, with an open instance %d, requests %d, acknowledged %d (granted %d, released %d), refused %d, "+
		"failed %d, lost on the way to a site %d, unknown to clients %d, resolved %d, max acquired %d of %d, answers repeated %d",
		rounds, open, stats.Requests, stats.Granted+stats.Released, stats.Granted, stats.Released, stats.Refused,
		stats.Failed, lost, stats.Unknown, stats.Resolved, l.Ledger().MaxAcquired(entity).Tokens, limit, repeated)
}

// lostCalls counts the calls relayed by app managers that may have been executed and had
// no answer. Clients see an unknown outcome only of calls that no other site could
// settle.
func lostCalls(t *testing.T, cluster *proc.Cluster) int {
	t.Helper()
	sum := 0.0
	for _, p := range cluster.AppManagers() {
		found, err := series(t.Context(), p, `samya_appmgr_site_calls_total\{fate="lost",[^}]*\}`)
		if err != nil {
			t.Error(err)
		}
		for _, v := range found {
			sum += v
		}
	}
	return int(sum)
}

// loadRegions are the clients of the cluster's regions.
func loadRegions(cluster *proc.Cluster, limit int64) []load.Region {
	var rs []load.Region
	for i, name := range regions {
		rs = append(rs, load.Region{
			Name: name, Addr: cluster.AppManager(i).HTTP, Target: day(limit, 15*time.Second, i, len(regions)),
		})
	}
	return rs
}

// pause waits while the load goes on.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	if err := wan.Wait(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// moment is when a site is killed.
type moment func(*samyav1.Share) bool

func anyTime(*samyav1.Share) bool         { return true }
func whileOffering(s *samyav1.Share) bool { return s.GetOffered() != 0 }
func whileWaiting(s *samyav1.Share) bool  { return s.GetWaiting() != 0 }

// killOnce kills a site at the moment wanted, starts it again and returns 1 if
// its disk shows that an instance was open there.
func killOnce(t *testing.T, p *proc.Process, c *client, at moment) int {
	t.Helper()
	pause(t, time.Duration(200+rand.IntN(800))*time.Millisecond)
	await(t, c, at)
	kill(t, p)
	open := 0
	if instanceOpen(t, p) {
		open = 1
	}
	pause(t, time.Duration(rand.IntN(1000))*time.Millisecond)
	restart(t, p)
	return open
}

// await polls until the site's share is as wanted. It gives up without failing: the disk
// of the killed site shows the site's state at its death.
func await(t *testing.T, c *client, at moment) {
	t.Helper()
	for began := time.Now(); !at(c.share(t)) && time.Since(began) < patience/3; {
		pause(t, 2*time.Millisecond)
	}
}

// checkLedger waits until no tokens are between sites, and compares the books with the
// clients' ledger.
func checkLedger(t *testing.T, cluster *proc.Cluster, l *ledger.Ledger, limit int64) {
	t.Helper()
	api, err := httpapi.New(cluster.AppManager(0).HTTP, nil)
	if err != nil {
		t.Fatal(err)
	}
	held := l.Held(entity)
	var last httpapi.Status
	sitetest.Eventually(t, "the books settle", func() error {
		var err error
		last, err = api.GetEntity(t.Context(), entity)
		if err == nil && (!last.Complete || last.InTransit != 0) {
			err = fmt.Errorf("%+v", last)
		}
		return err
	})
	if last.Acquired != held || last.Available != limit-held {
		t.Errorf("the books have %d acquired and %d available of %d; the clients hold %d",
			last.Acquired, last.Available, limit, held)
	}
}

// repeatAnswers repeats a sample of the answered requests at the sites that answered
// them. It checks that the answers are the same and that nothing moves, and returns the
// number of repeats.
func repeatAnswers(t *testing.T, limit int64, clients []*client, seen *answers, perSite int) int {
	t.Helper()
	_, _, net := books(t, clients)
	repeated := 0
	for _, c := range clients {
		given := seen.at(c.site.Name)
		rand.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		given = given[:min(perSite, len(given))]
		if len(given) == 0 {
			t.Errorf("%s has answered nothing", c.site.Name)
		}
		for _, a := range given {
			if again := repeatRelayed(t.Context(), c, a); again != a {
				t.Errorf("%s answered %+v, and the repeat %+v", c.site.Name, a, again)
			}
			repeated++
		}
	}
	// A redistribution may be under way; the tokens acquired by clients stay.
	settled(t, limit, net, clients...)
	return repeated
}
