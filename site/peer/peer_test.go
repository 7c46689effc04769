package peer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/avantan"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/peer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const greetingTimeout = 20 * time.Second

// end is a site's links, with the listener at which others reach the site.
type end struct {
	t        *testing.T
	links    *peer.Links
	address  string
	received chan message.Envelope
	linked   chan []core.SiteID
	stop     func()
}

// book is where sites find each other.
type book struct {
	mu        sync.Mutex
	addresses map[core.SiteID]string
}

func (b *book) set(site core.SiteID, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses[site] = address
}

func (b *book) of(site core.SiteID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addresses[site]
}

func newBook() *book { return &book{addresses: make(map[core.SiteID]string)} }

// start runs a site's links. It is found in the book at once.
func start(t *testing.T, b *book, self core.SiteID, tweak func(*peer.Config)) *end {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &end{
		t: t, address: lis.Addr().String(), received: make(chan message.Envelope, 100_000), linked: make(chan []core.SiteID, 1000),
	}
	cfg := peer.Config{
		Cluster: "prod", Self: self, Members: []core.SiteID{"as", "eu", "us"}, MembersVersion: 1, Address: b.of,
		Receive: func(from core.SiteID, messages []message.Envelope) {
			for _, m := range messages {
				if m.Message.From != from || m.Message.To != self {
					t.Errorf("%s receives from %s: %+v", self, from, m)
				}
				e.received <- m
			}
		},
		Connected: func(sites []core.SiteID) { e.linked <- sites },
		Logger:    slog.New(slog.DiscardHandler),
	}
	if tweak != nil {
		tweak(&cfg)
	}
	e.links = peer.New(cfg)
	security := insecure.NewCredentials()
	if cfg.TLS != nil {
		security = cfg.TLS.ServerCredentials()
	}
	server := grpc.NewServer(grpc.Creds(security))
	peerv1.RegisterPeerServiceServer(server, e.links)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { e.links.Run(ctx) })
	all.Go(func() {
		if err := server.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	e.stop = sync.OnceFunc(func() {
		cancel()
		server.Stop()
		all.Wait()
	})
	t.Cleanup(e.stop)
	b.set(self, e.address)
	return e
}

// awaitLinked waits until the site has links to exactly these others.
func (e *end) awaitLinked(want ...core.SiteID) {
	e.t.Helper()
	timeout := time.After(greetingTimeout)
	for !slices.Equal(e.links.Connected(), want) {
		select {
		case <-e.linked:
		case <-timeout:
			e.t.Fatalf("linked to %v, want %v", e.links.Connected(), want)
		}
	}
}

func (e *end) next() message.Envelope {
	e.t.Helper()
	select {
	case m := <-e.received:
		return m
	case <-time.After(greetingTimeout):
		e.t.Fatal("nothing arrives")
		return message.Envelope{}
	}
}

func numbered(from, to core.SiteID, n int) message.Envelope {
	return message.Envelope{Entity: "e", Generation: 3, Message: avantan.Message{
		Kind: avantan.Election, From: from, To: to, Instance: avantan.Instance(n), Ballot: avantan.Ballot{Number: 1, Site: from},
	}}
}

// TestInOrder: messages arrive as they were sent, each at its receiver.
func TestInOrder(t *testing.T) {
	b := newBook()
	as, eu, us := start(t, b, "as", nil), start(t, b, "eu", nil), start(t, b, "us", nil)
	us.awaitLinked("as", "eu")
	as.awaitLinked("eu", "us")
	const n = 5000
	for i := range n {
		us.links.Send([]message.Envelope{numbered("us", "as", i), numbered("us", "eu", 2*i), numbered("us", "nobody", i)})
		as.links.Send([]message.Envelope{numbered("as", "us", i)})
	}
	for i := range n {
		if m := as.next(); m.Message.Instance != avantan.Instance(i) || m.Message.From != "us" || m.Entity != "e" || m.Generation != 3 {
			t.Fatalf("message %d: %+v", i, m)
		}
		if m := eu.next(); m.Message.Instance != avantan.Instance(2*i) {
			t.Fatalf("message %d: %+v", i, m)
		}
		if m := us.next(); m.Message.Instance != avantan.Instance(i) || m.Message.From != "as" {
			t.Fatalf("message %d: %+v", i, m)
		}
	}
}

// TestParts sends messages that are larger than gRPC takes at a time.
func TestParts(t *testing.T) {
	b := newBook()
	us, eu := start(t, b, "us", nil), start(t, b, "eu", nil)
	us.awaitLinked("eu")
	large := numbered("us", "eu", 1)
	large.Message.Kind, large.Message.Snapshot = avantan.CatchUp, bytes.Repeat([]byte("0123456789"), 1<<20)
	exact := numbered("us", "eu", 2)
	exact.Message.Snapshot = make([]byte, 1<<20)
	us.links.Send([]message.Envelope{numbered("us", "eu", 0), large})
	us.links.Send([]message.Envelope{exact})
	us.links.Send([]message.Envelope{numbered("us", "eu", 3)})
	for i := range 4 {
		m := eu.next()
		if m.Message.Instance != avantan.Instance(i) {
			t.Fatalf("message %d comes in place %d", m.Message.Instance, i)
		}
		if i == 1 && !bytes.Equal(m.Message.Snapshot, large.Message.Snapshot) {
			t.Errorf("%d bytes arrive of %d", len(m.Message.Snapshot), len(large.Message.Snapshot))
		}
	}
}

// TestReconnect: a link comes back by itself, to the peer's present address.
func TestReconnect(t *testing.T) {
	b := newBook()
	us, eu := start(t, b, "us", nil), start(t, b, "eu", nil)
	us.awaitLinked("eu")
	for i := range 3 {
		eu.stop()
		us.awaitLinked()
		us.links.Send([]message.Envelope{numbered("us", "eu", 100)})
		eu = start(t, b, "eu", nil)
		us.awaitLinked("eu")
		eu.awaitLinked("us")
		us.links.Send([]message.Envelope{numbered("us", "eu", i)})
		// Messages sent while the link was down may arrive or be lost.
		m := eu.next()
		if m.Message.Instance == 100 {
			m = eu.next()
		}
		if m.Message.Instance != avantan.Instance(i) {
			t.Errorf("%+v", m)
		}
	}
}

// TestWhoIsHeardOfIsLinkedAtOnce: a member that comes back is linked when its own link
// arrives, not when the pause between two attempts is over.
func TestWhoIsHeardOfIsLinkedAtOnce(t *testing.T) {
	b := newBook()
	var attempts atomic.Int32
	us := start(t, b, "us", func(c *peer.Config) {
		c.Address = func(to core.SiteID) string {
			if to == "eu" {
				attempts.Add(1)
			}
			return b.of(to)
		}
	})
	// After that many the pause is 2 s, the longest.
	const longest = 7
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); attempts.Load() < longest; <-tick.C {
		if time.Since(began) > greetingTimeout {
			t.Fatalf("%d attempts in %s", attempts.Load(), greetingTimeout)
		}
	}
	began := time.Now()
	eu := start(t, b, "eu", nil)
	eu.awaitLinked("us")
	us.awaitLinked("eu")
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("linked after %s", took)
	}
}

// TestQueueIsBounded: the queue for an absent peer keeps a bounded number of messages,
// the oldest.
func TestQueueIsBounded(t *testing.T) {
	b := newBook()
	us := start(t, b, "us", nil)
	const most = 16384
	for i := range most + 5000 {
		us.links.Send([]message.Envelope{numbered("us", "eu", i)})
	}
	eu := start(t, b, "eu", nil)
	us.awaitLinked("eu")
	us.links.Send([]message.Envelope{numbered("us", "eu", 1_000_000)})
	got := 0
	for m := eu.next(); m.Message.Instance < 1_000_000; m = eu.next() {
		if m.Message.Instance != avantan.Instance(got) {
			t.Fatalf("message %d comes in place %d", m.Message.Instance, got)
		}
		if got++; got == most {
			// The queue is empty now, so this message is kept for certain.
			us.links.Send([]message.Envelope{numbered("us", "eu", 1_000_001)})
		}
	}
	if got > most {
		t.Errorf("%d messages were kept", got)
	}
}

// TestFault: the hook of tests loses messages while it says so.
func TestFault(t *testing.T) {
	b := newBook()
	var cut atomic.Bool
	lost := make(chan core.SiteID, 10)
	us := start(t, b, "us", func(c *peer.Config) {
		c.Fault = func(to core.SiteID) bool {
			if cut.Load() {
				lost <- to
				return true
			}
			return false
		}
	})
	eu := start(t, b, "eu", nil)
	us.awaitLinked("eu")
	for i := range 3 {
		cut.Store(i == 1)
		us.links.Send([]message.Envelope{numbered("us", "eu", i)})
		if i == 1 {
			if to := <-lost; to != "eu" {
				t.Errorf("a message to %s is lost", to)
			}
			continue
		}
		if m := eu.next(); m.Message.Instance != avantan.Instance(i) {
			t.Errorf("message %d: %+v", i, m)
		}
	}
}

var members = []core.SiteID{"as", "eu", "us"}

// greetings are introductions, and the text of their refusals; empty for none.
var greetings = map[string]struct {
	change func(t *testing.T, h *peerv1.Hello)
	says   string
}{
	"a member":      {func(*testing.T, *peerv1.Hello) {}, ""},
	"other cluster": {func(_ *testing.T, h *peerv1.Hello) { h.Cluster = "test" }, `"test"`},
	"no cluster":    {func(_ *testing.T, h *peerv1.Hello) { h.Cluster = "" }, `cluster ""`},
	"a stranger":    {func(_ *testing.T, h *peerv1.Hello) { h.Site = "sa" }, `"sa"`},
	"no name":       {func(_ *testing.T, h *peerv1.Hello) { h.Site = "" }, `""`},
	"too new":       {func(_ *testing.T, h *peerv1.Hello) { h.OldestVersion, h.NewestVersion = 7, 8 }, "site us has a build that speaks versions 3 to 4, site eu a build that speaks versions 1 to 2"},
	"too old":       {func(_ *testing.T, h *peerv1.Hello) { h.OldestVersion, h.NewestVersion = 0, 0 }, "speaks version 0 alone"},
	"of the first version": {func(_ *testing.T, h *peerv1.Hello) {
		h.OldestVersion, h.NewestVersion, h.ClusterVersion, h.Undecided = 5, 5, 0, false
	}, ""},
	"in a later cluster": {func(_ *testing.T, h *peerv1.Hello) {
		h.OldestVersion, h.NewestVersion, h.ClusterVersion, h.Undecided = 6, 7, 3, false
	}, "the cluster is of version 3, for which the build of site eu is too old; start there a build of version 3 or 4"},
	"newer and able": {func(_ *testing.T, h *peerv1.Hello) { h.NewestVersion = 9 }, ""},
	"other members": {func(t *testing.T, h *peerv1.Hello) {
		t.Helper()
		h.MembersHash = hello(t, []core.SiteID{"eu", "us"}).GetMembersHash()
	}, "member set"},
	"run-on names": {func(t *testing.T, h *peerv1.Hello) {
		t.Helper()
		h.MembersHash = hello(t, []core.SiteID{"aseu", "eu", "us"}).GetMembersHash()
	}, "member set"},
	"no members":    {func(_ *testing.T, h *peerv1.Hello) { h.MembersHash = nil }, "member set"},
	"later members": {func(_ *testing.T, h *peerv1.Hello) { h.MembersVersion, h.MembersHash = 2, []byte("x") }, ""},
}
