package site_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

const (
	// adoptEntities is the number of entities, adoptRate the acquires and releases a second
	// at all sites together.
	adoptEntities, adoptRate = 100_000, 300
	// adoptRuns is the number of runs, each on a copy of the same data.
	adoptRuns = 3
	// adoptBefore is how long the load runs before a site is added, and after it has come.
	adoptBefore = 30 * time.Second
)

// BenchmarkAdoption adds a fourth site to three sites with 100,000 entities, under a load
// of a fixed rate (open loop: a call counts from the time at which it was due). It reports
// the time from the seat to the admission, and from the admission until no site knows of
// an entity that is behind. It reports the percentiles of the calls before, while the site
// joins, while entities adopt, and after; and the ratios to before. The ratio of after to
// before is the control: it shows the noise of the machine.
//
// Sites and load share the processors, and the sites a disk.
func BenchmarkAdoption(b *testing.B) {
	s := buildSamya(b)
	base := filepath.Join(s.dir, "base")
	names := []string{"as", "eu", "us"}
	sites := startMembers(b, s, base, names)
	makeEntities(b, sites)
	for _, p := range sites {
		p.stop()
	}
	var all []adoption
	b.ResetTimer()
	for range b.N * adoptRuns {
		dir := filepath.Join(s.dir, "run")
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			b.Fatal(err)
		}
		a := adoptionOf(b, s, dir, names)
		b.Logf("%+v", a)
		all = append(all, a)
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	report := func(name string, figure func(adoption) float64) {
		figures := make([]float64, len(all))
		for i := range all {
			figures[i] = figure(all[i])
		}
		b.ReportMetric(median(figures), name)
	}
	report("s/join", func(a adoption) float64 { return a.join.Seconds() })
	report("s/adopt", func(a adoption) float64 { return a.adopt.Seconds() })
	report("cpu-µs/adoption", func(a adoption) float64 { return a.cpu })
	report("refused", func(a adoption) float64 { return float64(a.refused) })
	for i, phase := range phases {
		report(phase+"-p50-ms", func(a adoption) float64 { return a.of[i].p50 })
		report(phase+"-p99-ms", func(a adoption) float64 { return a.of[i].p99 })
		report(phase+"-p99.9-ms", func(a adoption) float64 { return a.of[i].p999 })
		if i > 0 {
			report(phase+"-p99.9-ratio", func(a adoption) float64 { return a.of[i].p999 / a.of[0].p999 })
		}
	}
	b.ReportMetric(0, "ns/op")
}

// phases are the parts of a run.
var phases = [...]string{"before", "join", "adopt", "after"}

// adoption are the figures of a run.
type adoption struct {
	join, adopt time.Duration
	refused     int64
	// cpu is the processor time of all sites for an adoption in microseconds, without that
	// of the load.
	cpu float64
	of  [len(phases)]percentiles
}

// percentiles are milliseconds, of n calls.
type percentiles struct {
	p50, p99, p999 float64
	n              int
}

// startMembers starts the founders of a cluster, with their data in a directory.
func startMembers(b *testing.B, s samya, dir string, names []string) []*process {
	b.Helper()
	gossip := make([]string, len(names))
	for i := range names {
		gossip[i] = sitetest.FreePort(b)
	}
	sites := make([]*process, len(names))
	for i, name := range names {
		sites[i] = startMember(b, s, dir, name, gossip[i], gossip, "--members", strings.Join(names, ","))
	}
	return sites
}

// startMember starts a site of a cluster.
func startMember(b *testing.B, s samya, dir, name, gossip string, join []string, flags ...string) *process {
	b.Helper()
	addr, http := sitetest.FreePort(b), sitetest.FreePort(b)
	args := append([]string{
		"site", "--name", name, "--region", name, "--data", filepath.Join(dir, name), "--log-level", "error", "--request-retention", "10s",
		"--grpc", addr, "--http", http, "--gossip", gossip, "--join", strings.Join(join, ","), "--preset", "local",
	}, flags...)
	p := startProcess(b, name, exec.CommandContext(b.Context(), s.binary, args...), addr)
	p.http, p.gossip = http, gossip
	return p
}

// makeEntities creates the entities.
func makeEntities(b *testing.B, sites []*process) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(400)
	for i := range adoptEntities {
		entities := samyav1.NewEntityServiceClient(sites[0].conn(b))
		group.Go(func() error {
			for {
				_, err := entities.CreateEntity(b.Context(), &samyav1.CreateEntityRequest{Name: adoptName(i), Limit: 900, RequestId: adoptName(i)})
				if err == nil || b.Context().Err() != nil {
					return err
				}
				pauseFor(b.Context(), 100*time.Millisecond)
			}
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func adoptName(i int) string { return fmt.Sprintf("acme/e%06d", i) }

// pauseFor waits, or until a context is done.
func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// adoptionOf makes a run.
func adoptionOf(b *testing.B, s samya, dir string, names []string) (a adoption) {
	b.Helper()
	sites := startMembers(b, s, dir, names)
	defer func() {
		for _, p := range sites {
			p.stop()
		}
	}()
	sitetest.Eventually(b, "the sites serve", func() error {
		for _, p := range sites {
			if _, err := samyav1.NewTokenServiceClient(p.conn(b)).Acquire(b.Context(), &samyav1.AcquireRequest{Entity: adoptName(0), Tokens: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var load steadyLoad
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i, p := range sites {
		running.Go(func() {
			load.run(ctx, samyav1.NewTokenServiceClient(p.conn(b)), adoptRate/float64(len(sites)), uint64(i))
		})
	}
	pauseFor(ctx, 10*time.Second) // warms up
	cpu := func() (sum time.Duration) {
		for _, p := range sites {
			sum += p.cpu(b)
		}
		return sum
	}
	began, spentBefore := time.Now(), cpu()
	pauseFor(ctx, adoptBefore)
	loads := float64((cpu() - spentBefore).Microseconds()) / time.Since(began).Seconds()
	added := time.Now()
	joiner := startMember(b, s, dir, "west", sitetest.FreePort(b), []string{sites[0].gossip})
	sites = append(sites, joiner)
	if _, err := samyav1.NewClusterServiceClient(sites[0].conn(b)).AddMember(b.Context(), &samyav1.AddMemberRequest{Name: "west"}); err != nil {
		b.Fatal(err)
	}
	var admitted time.Time
	var spentAdmitted time.Duration
	for ; ; pauseFor(ctx, 100*time.Millisecond) {
		if version, behind := membersAt(b, sites[:len(names)]); version == 2 && admitted.IsZero() {
			admitted, spentAdmitted = time.Now(), cpu()
		} else if version == 2 && behind == 0 {
			if version, behind := membersAt(b, sites); version == 2 && behind == 0 {
				break
			}
		}
		if time.Since(added) > 5*time.Minute {
			b.Fatal("the entities do not adopt the new voters")
		}
	}
	adopted := time.Now()
	a.cpu = (float64((cpu() - spentAdmitted).Microseconds()) - loads*adopted.Sub(admitted).Seconds()) / adoptEntities
	pauseFor(ctx, 5*time.Second)
	settled := time.Now()
	pauseFor(ctx, adoptBefore)
	ended := time.Now()
	stop()
	running.Wait()
	a.join, a.adopt, a.refused = admitted.Sub(added), adopted.Sub(admitted), load.refused.Load()
	a.of = [...]percentiles{
		load.between(began, added), load.between(added, admitted), load.between(admitted, adopted), load.between(settled, ended),
	}
	return a
}

// membersAt returns the earliest version of the members, and the largest number of
// entities behind, that sites tell.
func membersAt(b *testing.B, sites []*process) (version, behind uint64) {
	b.Helper()
	version = ^uint64(0)
	for _, p := range sites {
		m, err := samyav1.NewClusterServiceClient(p.conn(b)).ListMembers(b.Context(), &samyav1.ListMembersRequest{})
		if err != nil {
			return 0, 0
		}
		version, behind = min(version, m.GetVersion()), max(behind, m.GetBehind())
	}
	return version, behind
}

// steadyLoad is acquires and releases at a fixed rate.
type steadyLoad struct {
	refused atomic.Int64

	mu   sync.Mutex
	made []madeCall
}

// madeCall is a call that was due at a time.
type madeCall struct {
	due  time.Time
	took time.Duration
}

// run makes calls at a site: acquires of random entities, and in turn releases.
func (l *steadyLoad) run(ctx context.Context, tokens samyav1.TokenServiceClient, rate float64, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	held := make(chan string, 1<<16)
	var calls sync.WaitGroup
	defer calls.Wait()
	every := time.Duration(float64(time.Second) / rate)
	for due := time.Now(); ; due = due.Add(every) {
		pauseFor(ctx, time.Until(due))
		if ctx.Err() != nil {
			return
		}
		entity, back := adoptName(r.IntN(adoptEntities)), ""
		if len(held) > 64 {
			back = <-held
		}
		calls.Go(func() {
			var err error
			if back != "" {
				_, err = tokens.Release(context.WithoutCancel(ctx), &samyav1.ReleaseRequest{Entity: back, Tokens: 1})
			} else if _, err = tokens.Acquire(context.WithoutCancel(ctx), &samyav1.AcquireRequest{Entity: entity, Tokens: 1}); err == nil {
				held <- entity
			}
			if err != nil {
				l.refused.Add(1)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.made = append(l.made, madeCall{due, time.Since(due)})
		})
	}
}

// between are the percentiles of the calls that were due in a time.
func (l *steadyLoad) between(from, to time.Time) percentiles {
	l.mu.Lock()
	defer l.mu.Unlock()
	var took []float64
	for _, c := range l.made {
		if !c.due.Before(from) && c.due.Before(to) {
			took = append(took, c.took.Seconds()*1e3)
		}
	}
	if len(took) == 0 {
		return percentiles{}
	}
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(float64(len(took)-1)*share)] }
	return percentiles{p50: at(.5), p99: at(.99), p999: at(.999), n: len(took)}
}
