package failuretest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/site/sitetest"
)

// TestARepeatMovesNothing repeats requests under their ids: at once, after a stop of the
// site, after a kill, and while the first request waits.
func TestARepeatMovesNothing(t *testing.T) {
	beside(t)
	const limit = 30
	cluster := start(t, proc.Config{Sites: []string{"us", "eu", "as"}, AppManagers: []string{"us"}})
	clients := dialAll(t, cluster)
	create(t, limit, clients...)
	us := clients[0]
	m := &movers{clients: clients}
	for _, a := range []answer{
		{id: "take", kind: ledger.Acquire, asked: 7},
		{id: "give", kind: ledger.Release, asked: 2},
		{id: "take-more", kind: ledger.Acquire, asked: 3},
		{id: "too-many", kind: ledger.Acquire, asked: limit},
	} {
		m.book(given{us, send(t.Context(), us, a, 0)})
	}
	m.held -= 2 // of the release, which book takes as counted
	if len(m.given) != 4 || m.held != 8 {
		t.Fatalf("answers %v, held %d", m.given, m.held)
	}
	again := func(when string) {
		t.Helper()
		given := m.given
		for range 3 {
			m.check(t, limit)
			m.given = given
		}
		if t.Failed() {
			t.Fatal(when)
		}
	}
	again("at once")
	otherBodyRefused(t, us)
	otherBodyRefusedByHTTP(t, cluster)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cluster.Site(0).Stop(ctx, patience); err != nil {
		t.Fatal(err)
	}
	restart(t, cluster.Site(0))
	again("after a stop")
	otherBodyRefused(t, us)

	kill(t, cluster.Site(0))
	restart(t, cluster.Site(0))
	again("after kill -9")
	otherBodyRefused(t, us)
	otherBodyRefusedByHTTP(t, cluster)

	repeatsWhileWaiting(t, cluster, clients, m)
	kill(t, cluster.Site(0))
	restart(t, cluster.Site(0))
	again("after a wait and kill -9")
}

// otherBodyRefused sends other requests under the ids of answered requests.
func otherBodyRefused(t *testing.T, c *client) {
	t.Helper()
	before := c.share(t)
	for _, a := range []answer{
		{id: "take", kind: ledger.Acquire, asked: 8},
		{id: "take", kind: ledger.Release, asked: 7},
		{id: "give", kind: ledger.Release, asked: 1},
		{id: "give", kind: ledger.Acquire, asked: 2},
		{id: "too-many", kind: ledger.Acquire, asked: 1},
	} {
		if got := send(t.Context(), c, a, 0); got.reason != apierr.RequestIDReused {
			t.Errorf("%s of %d under the used id %s: %+v, want %s", a.kind, a.asked, a.id, got, apierr.RequestIDReused)
		}
	}
	if s := c.share(t); s.GetNet() != before.GetNet() || s.GetLeft() != before.GetLeft() {
		t.Errorf("refused requests have moved tokens: %v, before %v", s, before)
	}
}

// otherBodyRefusedByHTTP is otherBodyRefused through the app manager.
func otherBodyRefusedByHTTP(t *testing.T, cluster *proc.Cluster) {
	t.Helper()
	addr := cluster.AppManager(0).HTTP
	api, err := httpapi.New(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "a repeat through the app manager", func() error {
		m, err := api.Acquire(t.Context(), entity, httpapi.Request{Tokens: 7, RequestID: "take", Site: "us"})
		if err == nil && (m.Tokens != 7 || m.Site != "us" || m.RequestID != "take") {
			err = fmt.Errorf("%+v", m)
		}
		return err
	})
	if _, err = api.Acquire(t.Context(), entity, httpapi.Request{Tokens: 8, RequestID: "take", Site: "us"}); !errors.Is(err, apierr.RequestIDReused) {
		t.Errorf("another body through the app manager: %v, want %s", err, apierr.RequestIDReused)
	}
	resp, err := http.Post("http://"+addr+"/v1/entities/"+entity+":release", "application/json",
		strings.NewReader(`{"tokens":7,"request_id":"take","site":"us"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusConflict {
		t.Errorf("another body through the app manager: status %d, want %d", resp.StatusCode, http.StatusConflict)
	}
}

// repeatsWhileWaiting has callers repeat an acquire at once that waits for tokens: the
// other sites are gone. Tokens released then serve it, once.
func repeatsWhileWaiting(t *testing.T, cluster *proc.Cluster, clients []*client, m *movers) {
	t.Helper()
	us := clients[0]
	kill(t, cluster.Site(1))
	kill(t, cluster.Site(2))
	left, net := us.share(t).GetLeft(), us.share(t).GetNet()
	first := answer{id: "wait", kind: ledger.Acquire, asked: left + 2}
	const callers = 12
	var all sync.WaitGroup
	got := make([]answer, callers)
	for i := range got {
		all.Go(func() { got[i] = send(t.Context(), us, first, patience) })
	}
	sitetest.Eventually(t, "the acquire waits", func() error {
		if s := us.share(t); s.GetWaiting() != 1 {
			return fmt.Errorf("%d wait, want 1: %v", s.GetWaiting(), s)
		}
		return nil
	})
	if a := send(t.Context(), us, answer{id: "wait", kind: ledger.Acquire, asked: 1}, 0); a.reason != apierr.RequestIDReused {
		t.Errorf("another body under the id of a request that waits: %+v, want %s", a, apierr.RequestIDReused)
	}
	if a := send(t.Context(), us, answer{id: "make-room", kind: ledger.Release, asked: 5}, 0); a.reason != "" {
		t.Fatalf("release: %+v", a)
	}
	all.Wait()
	for _, a := range got {
		if a != got[0] || a.reason != "" || a.tokens != left+2 {
			t.Errorf("one caller is told %+v, another %+v", got[0], a)
		}
	}
	if s := us.share(t); s.GetNet() != net-5+left+2 {
		t.Errorf("net %d, want %d: %d callers of one id were granted once", s.GetNet(), net-5+left+2, callers)
	}
	m.held += left + 2 - 5
	m.given = append(m.given, given{us, got[0]})
	restart(t, cluster.Site(1))
	restart(t, cluster.Site(2))
}
