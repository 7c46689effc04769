package failuretest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/wan"
)

// changePatience bounds a change of the members.
const changePatience = 3 * time.Minute

// fleet is a cluster whose members change.
type fleet struct {
	t       *testing.T
	rng     *rand.Rand
	cluster *proc.Cluster
	asked   *httpapi.Client // at an app manager
	books   *memberAccounts
	bin     string

	mu    sync.Mutex
	sites map[string]*proc.Process
	// leaving are the sites that may end by themselves.
	leaving map[string]bool
	kills   map[string]int
	changes []string
	watch   sync.WaitGroup
}

// role is a part in a change of the members.
type role string

// The sites that are killed in the middle of a change.
const (
	joiner role = "joiner"
	leaver role = "leaver"
	// leader is the site that proposes the change: that which the app manager asks.
	leader role = "leader"
)

// newFleet starts the founders, with app managers beside two of them.
func newFleet(t *testing.T, seed uint64, books *memberAccounts, retention time.Duration) *fleet {
	t.Helper()
	founders := []string{"us", "eu", "as"}
	protocol := []string{"majority", "star", "auto"}[seed%3]
	t.Logf("seed %d, protocol %s", seed, protocol)
	f := &fleet{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), books: books, bin: samya(t),
		sites: map[string]*proc.Process{}, leaving: map[string]bool{}, kills: map[string]int{},
	}
	f.cluster = start(t, proc.Config{
		Bin: f.bin, Sites: founders, AppManagers: founders[:2],
		SiteArgs: []string{"--request-retention", retention.String(), "--clock-skew", "500ms", "--protocol", protocol},
	})
	for i, name := range founders {
		f.sites[name] = f.cluster.Site(i)
	}
	var err error
	if f.asked, err = httpapi.New("http://"+f.cluster.AppManager(0).HTTP, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.watch.Go(func() { f.mourn(ctx) })
	t.Cleanup(func() {
		stop()
		f.watch.Wait()
	})
	return f
}

// mourn looks at the sites that end by themselves: only a site that has left may.
func (f *fleet) mourn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case death := <-f.cluster.Deaths():
			f.mu.Lock()
			leaving := f.leaving[death.Process.Name]
			f.mu.Unlock()
			if !leaving {
				f.t.Errorf("nobody asked for it: %v", death)
			}
			f.books.count("sites that ended once they had left", 1)
		}
	}
}

// seeds are the gossip addresses of the sites, but for one.
func (f *fleet) seeds(but string) (seeds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.sites)) {
		if name != but {
			seeds = append(seeds, f.sites[name].Gossip)
		}
	}
	return seeds
}

// site is the process of a site.
func (f *fleet) site(name string) *proc.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sites[name]
}

// names are the sites that have not left.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.sites))
}

// again starts a site that was killed. It joins by those that are there now.
func (f *fleet) again(p *proc.Process) {
	for i := range p.Args {
		if i > 0 && p.Args[i-1] == "--join" {
			p.Args[i] = strings.Join(f.seeds(p.Name), ",")
		}
	}
	if err := p.Start(); err != nil {
		f.t.Errorf("start %s again: %v", p.Name, err)
	}
}

// boot starts a site that is to join.
func (f *fleet) boot(name string) {
	f.t.Helper()
	p, err := f.cluster.Join(f.t.Context(), name, f.seeds("")...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sites[name] = p
}

// change runs a command that changes the members until it has succeeded, and meanwhile
// kills sites. joins and leaves name the sites that the change is about.
func (f *fleet) change(joins, leaves string, victims []role, args ...string) {
	f.t.Helper()
	what, began := strings.Join(args, " "), time.Now()
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(f.t.Context(), changePatience)
	defer cancel()
	go func() { done <- f.command(ctx, args) }()
	kills := 0
	for _, v := range victims {
		select {
		case err := <-done:
			done <- err
			continue
		case <-time.After(between(f.rng, 50*time.Millisecond, 1200*time.Millisecond)):
		}
		name := f.leads()
		switch v {
		case joiner:
			name = joins
		case leaver:
			name = leaves
		}
		p := f.site(name)
		if p == nil || len(done) > 0 {
			continue
		}
		f.books.killed()
		if err := p.Kill(); err != nil {
			f.t.Error(err)
		}
		kills++
		f.kills[string(v)]++
		_ = wan.Wait(ctx, between(f.rng, 50*time.Millisecond, 400*time.Millisecond))
		f.again(p)
	}
	if err := <-done; err != nil {
		f.t.Fatalf("%s: %v\n%s", what, err, f.tails())
	}
	took := time.Since(began).Round(100 * time.Millisecond)
	f.changes = append(f.changes, fmt.Sprintf("%s: %s, %d kills", what, took, kills))
	f.t.Logf("%s %s: %s, %d kills; members %s", time.Now().UTC().Format("15:04:05"), what, took, kills, strings.Join(f.names(), " "))
}

// leads is the site that a change is asked of next.
func (f *fleet) leads() string {
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Second)
	defer cancel()
	m, err := f.asked.ListMembers(ctx)
	site := strings.TrimPrefix(m.AnsweredBy, "site/")
	if err != nil || f.site(site) == nil {
		return f.names()[0]
	}
	return site
}

// command runs a command on the members, again and again until it has succeeded: a repeat
// goes on.
func (f *fleet) command(ctx context.Context, args []string) error {
	for {
		cmd := exec.CommandContext(ctx, f.bin, append(args, "--addr", "http://"+f.cluster.AppManager(0).HTTP)...)
		out, err := cmd.CombinedOutput()
		f.t.Logf("samya %s\n%s", strings.Join(args, " "), out)
		if err == nil {
			return nil
		}
		f.books.count("commands repeated", 1)
		if wan.Wait(ctx, 300*time.Millisecond) != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
}

// add has a site join.
func (f *fleet) add(name string, victims ...role) {
	f.t.Helper()
	f.boot(name)
	f.change(name, "", victims, "member", "add", name)
	f.ready()
}

// drain has a site leave in favour of another.
func (f *fleet) drain(name, heir string, victims ...role) {
	f.t.Helper()
	f.leave(name)
	f.change("", name, victims, "member", "drain", name, "--heir", heir)
	f.retire(name, heir)
}

// replace has a site join, and another leave in its favour.
func (f *fleet) replace(name, by string, victims ...role) {
	f.t.Helper()
	f.boot(by)
	f.leave(name)
	f.change(by, name, victims, "member", "replace", name, "--by", by)
	f.retire(name, by)
	f.ready()
}

// leave notes that a site may end by itself.
func (f *fleet) leave(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving[name] = true
}

// retire stops a site that has left, and removes its data.
func (f *fleet) retire(name, heir string) {
	f.t.Helper()
	p := f.site(name)
	f.mu.Lock()
	delete(f.sites, name)
	f.mu.Unlock()
	f.books.left(name, heir)
	if err := errors.Join(p.Stop(f.t.Context(), patience), os.RemoveAll(p.Data)); err != nil {
		f.t.Error(err)
	}
}

// ready waits until all sites serve.
func (f *fleet) ready() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*patience)
	defer cancel()
	for _, name := range f.names() {
		if err := f.site(name).WaitReady(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
}

// openAt is what is open at a site: leases, and an instance or a direct transfer.
type openAt struct {
	leases          int
	slice, transfer bool
}

func withAny(o openAt) bool      { return o.leases > 0 && (o.slice || o.transfer) }
func withSlice(o openAt) bool    { return o.leases > 0 && o.slice }
func withTransfer(o openAt) bool { return o.leases > 0 && o.transfer }

// lose destroys a machine while enough is open there, and writes the site off. tries bounds
// the kills until such a moment is found.
func (f *fleet) lose(name string, tries int, enough func(openAt) bool, replace ...string) {
	f.t.Helper()
	p := f.site(name)
	c := dial(f.t, p)
	var open openAt
	for try := range tries {
		moment := anyTime
		if try%3 > 0 {
			moment = whileOffering
		}
		for range 200 {
			ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
			s, ok := c.tryShare(ctx)
			cancel()
			if ok && moment(s) {
				break
			}
			_ = wan.Wait(f.t.Context(), 2*time.Millisecond) // the next look tells
		}
		f.books.dies(name)
		kill(f.t, p)
		state, err := loaded(f.t, copyData(f.t, p), name)
		if err != nil {
			f.t.Fatal(err)
		}
		open = openAt{len(state.Leases), instanceOpen(f.t, p), transferOpen(f.t, p)}
		if enough(open) || try == tries-1 {
			break
		}
		f.again(p)
		f.books.lives(name)
		f.ready()
		pause(f.t, between(f.rng, 200*time.Millisecond, time.Second))
	}
	f.burn(name)
	what := fmt.Sprintf("%s destroyed: %d leases, slice open %t, transfer open %t", name, open.leases, open.slice, open.transfer)
	f.t.Log(what)
	f.changes = append(f.changes, what)
	if len(replace) > 0 {
		f.boot(replace[0])
		f.change(replace[0], name, []role{joiner}, "member", "replace", name, "--by", replace[0], "--lost", "--yes")
		f.ready()
	} else {
		f.change("", name, nil, "member", "remove", name, "--lost", "--yes")
	}
	f.books.writtenOff()
}

// burn removes the data of a site that was killed, and the site.
func (f *fleet) burn(name string) {
	f.t.Helper()
	if err := os.RemoveAll(f.site(name).Data); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sites, name)
}

// loseMajority destroys the machines of two founders at the same time. The third goes on
// without them, by the word of an operator.
func (f *fleet) loseMajority() {
	f.t.Helper()
	for _, name := range []string{"eu", "as"} {
		f.books.dies(name)
		kill(f.t, f.site(name))
	}
	f.burn("eu")
	f.burn("as")
	f.change("", "", nil, "cluster", "recover", "--survivors", "us", "--lost-sites", "as,eu", "--machines-destroyed", "--yes")
	f.books.writtenOff()
}

// tails are the last lines of the sites' logs.
func (f *fleet) tails() string {
	var all strings.Builder
	for _, name := range f.names() {
		fmt.Fprintf(&all, "--- %s\n%s\n", name, f.site(name).Tail(15))
	}
	return all.String()
}
