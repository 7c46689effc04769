package failuretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/samya-db/samya/devcluster/etcd"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/site/sitetest"
)

// troubled is a caller of a site whose etcd is in trouble.
type troubled struct {
	*nodeSite
	c       *client
	calls   int
	held    int64
	unknown []string // ids of calls without an outcome
}

// startTroubled starts a site of two nodes with an entity.
func startTroubled(t *testing.T, cfg etcd.Config) *troubled {
	t.Helper()
	s := startNodes(t, 2, cfg)
	c := &troubled{nodeSite: s, c: dial(t, s.active().Process)}
	create(t, nodeLimit, c.c)
	if _, err := c.ask(patience); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask acquires a token under a new id, and returns how long it took.
func (c *troubled) ask(within time.Duration) (time.Duration, error) {
	c.calls++
	id := fmt.Sprintf("ask-%d", c.calls)
	began := time.Now()
	err := c.under(id, within)
	if err != nil && !apierr.FromGRPC(err).Reason.NothingDone() {
		c.unknown = append(c.unknown, id)
	}
	return time.Since(began), err
}

// under acquires a token under an id.
func (c *troubled) under(id string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	_, err := c.c.acquire(ctx, id, 1, 0)
	if err == nil {
		c.held++
	}
	return err
}

// refused asks until the site answers that it takes no requests, and then a few times more.
// It returns how long the site needed.
func (c *troubled) refused(began time.Time) time.Duration {
	c.t.Helper()
	reason := func() (apierr.Reason, error) {
		_, err := c.ask(time.Second)
		if err == nil {
			return "", nil
		}
		return apierr.FromGRPC(err).Reason, err
	}
	var took time.Duration
	sitetest.Eventually(c.t, "the site takes no requests", func() error {
		got, err := reason()
		took = time.Since(began)
		if got != apierr.SiteUnavailable || !strings.Contains(err.Error(), "nothing was done") {
			return fmt.Errorf("%w: %w", got, errors.Join(err, errTakes))
		}
		return nil
	})
	for range 10 {
		pause(c.t, 100*time.Millisecond)
		if got, err := reason(); got != apierr.SiteUnavailable {
			c.t.Errorf("a site in trouble answers %q: %v", got, err)
		}
	}
	return took
}

var errTakes = errors.New("not SITE_UNAVAILABLE")

// follow has the next calls go to the active node: another node may take over while etcd
// recovers.
func (c *troubled) follow() {
	c.t.Helper()
	if p := c.active().Process; p != c.c.site {
		c.c = dial(c.t, p)
	}
}

// recovered waits until the site serves, finds out all outcomes, and compares the books.
func (c *troubled) recovered() time.Duration {
	c.t.Helper()
	began := time.Now()
	c.alive()
	sitetest.Eventually(c.t, "the site serves again", func() error {
		c.follow()
		_, err := c.ask(2 * time.Second)
		return err
	})
	took := time.Since(began)
	for _, id := range c.unknown {
		sitetest.Eventually(c.t, "the outcome of "+id, func() error {
			c.follow()
			return c.under(id, 2*time.Second)
		})
	}
	settled(c.t, nodeLimit, c.held, c.c)
	c.alive()
	for _, n := range c.nodes {
		if n.PID() == 0 {
			c.t.Errorf("%s has ended", n.Name)
		}
	}
	return took
}

// TestNodesWithoutAMajority kills two of etcd's three members. The site answers that
// nothing was done, does not exit, and serves again once a member is back.
func TestNodesWithoutAMajority(t *testing.T) {
	c := startTroubled(t, etcd.Config{})
	members := c.etcd.Members()
	began := time.Now()
	for _, m := range members[:2] {
		kill(t, m.Process)
	}
	refused := c.refused(began)
	for _, m := range members[:2] {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	report(t, figures{
		{"refused after", millis(refused)}, {"served after", millis(c.recovered())}, {"calls", c.calls}, {"unknown", len(c.unknown)},
	})
	if refused > pick(10*time.Second, 4*time.Second) {
		t.Errorf("the site refused only after %s", refused)
	}
}

// TestNodesOfAFullEtcd has another program fill etcd's space. The site answers that nothing
// was done, does not exit, and serves again once an operator has made space.
func TestNodesOfAFullEtcd(t *testing.T) {
	c := startTroubled(t, etcd.Config{QuotaBytes: 16 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	filler, err := etcd.Dial(c.etcd.Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = filler.Close() }() // it has done its work
	value := strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		if _, err := filler.Put(ctx, fmt.Sprintf("filler/%d", i), value); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	refused := c.refused(time.Now())

	gone, err := filler.Delete(ctx, "filler/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filler.Compact(ctx, gone.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.etcd.Members() {
		if _, err := filler.Defragment(ctx, m.Endpoint); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := filler.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	report(t, figures{
		{"refused after", millis(refused)}, {"served after", millis(c.recovered())}, {"calls", c.calls}, {"unknown", len(c.unknown)},
	})
}

// TestNodesOfASlowEtcd delays each answer of etcd by 200 ms. The site is slow, and the
// active node stays.
func TestNodesOfASlowEtcd(t *testing.T) {
	const delay = 200 * time.Millisecond
	c := startTroubled(t, etcd.Config{})
	for _, n := range c.nodes {
		n.proxy.slow(delay)
	}
	node, term := c.watch.leader()
	var took []time.Duration
	for range pick(15, 60) {
		d, err := c.ask(5 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, d)
	}
	if now, at := c.watch.leader(); now != node || at != term {
		t.Errorf("node %s took the place of %s", now, node)
	}
	for _, n := range c.nodes {
		n.proxy.slow(0)
	}
	c.recovered()
	report(t, figures{{"median", millis(quantile(took, .5))}, {"longest", millis(quantile(took, 1))}})
	if median := quantile(took, .5); median < delay || median > 5*delay {
		t.Errorf("a call took %s", median)
	}
}
