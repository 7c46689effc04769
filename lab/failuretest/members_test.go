package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/sitetest"
)

// TestMembersChange has sites join, leave, be replaced and be lost while callers of the Go
// client acquire, release, and hold leases. The joiner, the leaver and the site that
// proposes the change are killed in the middle of changes. At no moment do callers hold
// more than the limit, no call fails, and in the end the sites' books are the callers'.
//
// What may fail, and why: an acquire for want of tokens. A call under way between the end
// of the destroyed machine and its write-off may have no outcome, if the machine may have
// done it: only that machine knew. Leases of that machine end with the write-off.
func TestMembersChange(t *testing.T) {
	beside(t)
	seed := seedOf(t)
	books := newMemberAccounts()
	retention := pick(12*time.Second, 15*time.Second)
	f := newFleet(t, seed, books, retention)
	f.create()
	l := f.load(seed, pick(200.0, 500.0), retention, pick([]string{"in"}, []string{"a1", "a2", "a4", "b1", "b2", "b4", "c1", "c2"})...)
	defer l.stop()
	pause(t, pick(time.Second, 5*time.Second))
	if long() {
		f.atLength()
	} else {
		f.add("in", joiner, leader)
		f.drain("as", "in", leaver, leader)
		f.lose("eu", 4, withAny)
	}
	pause(t, pick(time.Second, 5*time.Second))
	l.stop()
	f.tellFaults()
	f.judge()
	f.reconcile()

	fs := figures{{"seed", seed}, {"requests", books.figure("operations")}, {"calls", books.figure("calls")}, {"a second", l.rate()}}
	for _, v := range []role{joiner, leaver, leader} {
		fs = append(fs, figure{"kills of the " + string(v), f.kills[string(v)]})
	}
	fs = append(fs, figure{"faults", len(books.faults)})
	for _, e := range memberEntities {
		fs = append(fs, figure{"most of " + e.name, fmt.Sprintf("%d of %d", books.ledger.MaxAcquired(e.name).Tokens, e.limit)})
	}
	report(t, fs)
	for _, change := range f.changes {
		t.Log(change)
	}
	t.Log(books.words())
	if n := f.kills[string(joiner)] + f.kills[string(leaver)] + f.kills[string(leader)]; n < pick(1, 20) {
		t.Errorf("%d kills in the middle of a change, want %d", n, pick(1, 20))
	}
	for _, what := range []string{"granted", "released", "out of tokens", "leases", "leases renewed", "leases committed", "leases returned", "leases expired"} {
		if books.figure(what) == 0 {
			t.Errorf("the load shows too little: no %s", what)
		}
	}
}

// TestAMajorityIsLost destroys two machines of three under load. The site that is left goes
// on, and takes in another. As in TestMembersChange no call fails, and callers never hold
// more than the limit.
func TestAMajorityIsLost(t *testing.T) {
	beside(t)
	seed := seedOf(t)
	books := newMemberAccounts()
	retention := 12 * time.Second
	f := newFleet(t, seed, books, retention)
	f.create()
	l := f.load(seed, 200, retention, "in")
	defer l.stop()
	pause(t, pick(2*time.Second, 10*time.Second))
	f.loseMajority()
	f.add("in")
	pause(t, pick(time.Second, 5*time.Second))
	l.stop()
	f.tellFaults()
	f.judge()
	f.reconcile()
	report(t, figures{{"seed", seed}, {"requests", books.figure("operations")}, {"a second", l.rate()}, {"faults", len(books.faults)}})
	t.Log(books.words())
}

// create creates the entities.
func (f *fleet) create() {
	f.t.Helper()
	for _, e := range memberEntities {
		sitetest.Eventually(f.t, "creating "+e.name, func() error {
			if e.parent != "" {
				_, err := f.asked.Create(f.t.Context(), httpapi.Creation{Name: e.name, Limit: e.limit, Parent: e.parent, RequestID: e.name})
				return err
			}
			_, err := f.asked.CreateEntity(f.t.Context(), e.name, e.limit, e.name)
			return err
		})
	}
}

// tellFaults tells what the callers found wrong.
func (f *fleet) tellFaults() {
	f.t.Helper()
	for _, fault := range f.books.faults[:min(len(f.books.faults), 30)] {
		f.t.Error(fault)
	}
}

// atLength goes from 3 sites to 5, to 7 and back to 5, replaces each of the five, and
// replaces two that are lost.
func (f *fleet) atLength() {
	f.t.Helper()
	f.add("a1", joiner, leader)
	f.add("a2", joiner)
	f.add("a3", joiner, leader)
	f.add("a4", joiner)
	f.drain("as", "a1", leaver, leader, leaver)
	f.drain("a4", "a3", leaver, leader)
	for i, name := range []string{"us", "eu", "a1", "a2", "a3"} {
		f.replace(name, fmt.Sprint("b", i+1), joiner, leader, leaver, leaver)
	}
	f.lose("b2", 12, withTransfer, "c1")
	f.lose("b4", 12, withSlice, "c2")
	if got, want := f.names(), []string{"b1", "b3", "b5", "c1", "c2"}; !slices.Equal(got, want) {
		f.t.Errorf("the sites are %v, want %v", got, want)
	}
}

// memberLoad is the load on a fleet.
type memberLoad struct {
	began, ended time.Time
	books        *memberAccounts
	stop         func()
}

// rate is how many operations a second were made.
func (l *memberLoad) rate() int {
	return int(float64(l.books.figure("operations")) / l.ended.Sub(l.began).Seconds())
}

// load begins the load. A part of the callers asks the app managers. The others ask the
// sites, learn of those that come and go, and prefer a site that joins later.
func (f *fleet) load(seed uint64, rate float64, retention time.Duration, later ...string) *memberLoad {
	f.t.Helper()
	var managers, sites []sdk.Target
	for _, p := range f.cluster.AppManagers() {
		managers = append(managers, sdk.Target{Address: p.GRPC, Region: p.Name[len("am-"):]})
	}
	for _, p := range f.cluster.Sites() {
		sites = append(sites, sdk.Target{Address: p.GRPC, Region: p.Name})
	}
	var clients []*sdk.Client
	near := func(region string, targets []sdk.Target) {
		// What has no outcome may be asked again as long as sites remember.
		c, err := sdk.New(sdk.Config{Targets: targets, Region: region, Timeout: retention * 2 / 3, RepeatTime: retention / 4})
		if err != nil {
			f.t.Fatal(err)
		}
		clients = append(clients, c)
	}
	for _, at := range managers {
		near(at.Region, managers)
	}
	for _, at := range sites {
		near(at.Region, sites)
	}
	for _, region := range later {
		near(region, sites)
	}
	calls, cut := context.WithCancel(f.t.Context())
	ctx, stop := context.WithCancel(calls)
	var all sync.WaitGroup
	for i := range memberCallers {
		// A batch is a call with several operations, and calls that take long delay the next.
		c := &memberCaller{
			books: f.books, client: clients[i%len(clients)], rng: rand.New(rand.NewPCG(seed, uint64(100+i))),
			every: time.Duration(float64(memberCallers) * 1.1 / rate * float64(time.Second)), held: map[string]int64{},
		}
		all.Go(func() { c.run(ctx, calls) })
	}
	l := &memberLoad{began: time.Now(), books: f.books}
	l.stop = sync.OnceFunc(func() {
		stop()
		l.ended = time.Now()
		time.AfterFunc(2*patience, cut)
		all.Wait()
		cut()
		for _, c := range clients {
			if err := c.Close(context.Background()); err != nil {
				f.t.Error(err)
			}
		}
	})
	return l
}

// eventually asks for a thing until it is so, for a minute.
func (f *fleet) eventually(what string, check func(ctx context.Context) error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*patience)
	defer cancel()
	var last error
	for {
		if err := check(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			last = err
		}
		if wan.Wait(ctx, 100*time.Millisecond) != nil {
			f.t.Errorf("%s: still %v", what, last)
			return
		}
	}
}

// exact reads an entity, of all sites that have not left.
func (f *fleet) exact(ctx context.Context, of string) (httpapi.Status, error) {
	s, err := f.asked.ReadEntity(ctx, of, "exact", 0)
	if err != nil {
		return s, err
	}
	var names []string
	for _, share := range s.Shares {
		names = append(names, share.Site)
	}
	slices.Sort(names)
	if !s.Complete || !s.Consistent || s.InTransit != 0 || s.Surplus != 0 || !slices.Equal(names, f.names()) {
		return s, fmt.Errorf("%+v, of the sites %v", s, f.names())
	}
	return s, nil
}

// judge compares the books with those of the callers.
func (f *fleet) judge() {
	f.t.Helper()
	for _, e := range memberEntities {
		if peak := f.books.ledger.MaxAcquired(e.name); peak.Tokens > e.limit {
			f.t.Errorf("%d tokens of %s were out after %s, the limit is %d", peak.Tokens, e.name, peak.At, e.limit)
		}
		low, high := f.books.bounds(e.name)
		gone := f.books.gone(e.name)
		f.eventually("the books of "+e.name, func(ctx context.Context) error {
			s, err := f.exact(ctx, e.name)
			if err != nil {
				return err
			}
			if s.Acquired < low || s.Acquired > high || s.Available+s.Acquired+s.WrittenOff != e.limit || s.WrittenOff < gone-(high-low) {
				return fmt.Errorf("acquired %d, available %d, written off %d of %d; the callers have acquired %d to %d, and %d at lost sites",
					s.Acquired, s.Available, s.WrittenOff, e.limit, low, high, gone)
			}
			f.t.Logf("%s: acquired %d, available %d, written off %d of %d; the callers have acquired %d to %d, and %d at lost sites",
				e.name, s.Acquired, s.Available, s.WrittenOff, e.limit, low, high, gone)
			return nil
		})
	}
}

// reconcile has the books say what the callers hold: then nothing is written off any more.
// It goes from the bottom up, then from the top down through the entities that were refused
// before the entity above was reconciled.
func (f *fleet) reconcile() {
	f.t.Helper()
	refused := map[string]bool{}
	reconcile := func(of string) {
		f.eventually("the reconciliation of "+of, func(ctx context.Context) error {
			cut, err := f.asked.CutEntity(ctx, of)
			if err == nil {
				_, err = f.asked.ReconcileEntity(ctx, of, httpapi.Truth{InUse: f.books.held(of), Cut: cut.Cut})
			}
			if !refused[of] && err != nil && strings.Contains(err.Error(), "reconcile the entity above first") {
				refused[of] = true
				return nil
			}
			return err
		})
	}
	for _, e := range slices.Backward(memberEntities) {
		reconcile(e.name)
	}
	for _, e := range memberEntities {
		if refused[e.name] {
			reconcile(e.name)
		}
	}
	for _, e := range memberEntities {
		f.eventually("the reconciled books of "+e.name, func(ctx context.Context) error {
			s, err := f.exact(ctx, e.name)
			if held := f.books.ledger.Held(e.name); err == nil && (s.Acquired != held || s.WrittenOff != 0 || s.Available+held != e.limit) {
				err = fmt.Errorf("%+v; the callers hold %d", s, held)
			}
			return err
		})
	}
}
