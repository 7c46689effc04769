package peer

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/versions"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

// gossip is where site us finds site eu.
type gossip struct {
	mu      sync.Mutex
	address string
}

func (g *gossip) set(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.address = address
}

func (g *gossip) of(core.SiteID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.address
}

// prompt bounds how long a link to another address may take: far less than a connection
// that hangs takes to be noticed, or to be closed in good order.
const prompt = 3 * time.Second

// nodeOfEU is a node of site eu at an address of its own. Messages get a token for each
// message that it receives.
func nodeOfEU(t *testing.T, term int64) (l *Links, address string, messages <-chan struct{}) {
	t.Helper()
	got := make(chan struct{}, 100_000)
	l, _ = inside(func(c *Config) {
		asEU(c)
		c.Term = term
		c.Receive = func(_ core.SiteID, ms []message.Envelope) {
			for range ms {
				got <- struct{}{}
			}
		}
	})
	address, _ = listening(t, l)
	return l, address, got
}

// silentListener accepts connections, and never says anything.
func silentListener(t *testing.T) (address string) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	return lis.Addr().String()
}

// awaitLinks waits until links tells n links.
func awaitLinks(t *testing.T, links <-chan int, n int) {
	t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case got := <-links:
			if got == n {
				return
			}
		case <-timeout:
			t.Fatalf("there are not %d links", n)
		}
	}
}

// TestTakeOverAtAnotherAddress: the link goes to the address of the new node at once,
// whatever becomes of the connection to the old node: it hangs, it hangs full of messages,
// or the old node has not even greeted.
func TestTakeOverAtAnotherAddress(t *testing.T) {
	for what, messages := range map[string]int{"it hangs": 0, "it hangs full": 8, "it has not greeted": -1} {
		t.Run(what, func(t *testing.T) {
			var g gossip
			_, first, _ := nodeOfEU(t, 7)
			_, second, got := nodeOfEU(t, 9)
			links := make(chan int, 100)
			us, k := inside(func(c *Config) {
				c.Address = g.of
				c.Connected = func(s []core.SiteID) { links <- len(s) }
			})
			if messages < 0 {
				g.set(silentListener(t))
				running(t, us)
				awaitAttempt(t, k)
			} else {
				c := layCable(t, first)
				g.set(c.Addr().String())
				running(t, us)
				awaitLinks(t, links, 1)
				close(c.cut)
				for i := range messages {
					m := numbered(uint64(i))
					m.Snapshot = make([]byte, 1<<20)
					k.push(m)
				}
			}
			g.set(second)
			began := time.Now()
			us.Readdress()
			awaitLinks(t, links, 1)
			k.push(numbered(1))
			select {
			case <-got:
			case <-time.After(limit):
				t.Fatal("no message arrives at the new node")
			}
			if took := time.Since(began); took > prompt {
				t.Errorf("linked after %v", took)
			}
		})
	}
}

// awaitAttempt waits until a link has begun an attempt.
func awaitAttempt(t *testing.T, k *link) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		k.aim.Lock()
		begun := k.cancel != nil
		k.aim.Unlock()
		if begun {
			return
		}
		if time.Since(began) > limit {
			t.Fatal("no attempt")
		}
	}
}

// TestOnlyMovedLinksConnectAnew: a link to an address that stays, or of which nothing is
// known any more, goes on. A link that waits for its next attempt waits no longer.
func TestOnlyMovedLinksConnectAnew(t *testing.T) {
	for what, tc := range map[string]struct {
		last, now string
		up, anew  bool
	}{
		"it stays":                  {"a:1", "a:1", true, false},
		"it stays, between tries":   {"a:1", "a:1", false, false},
		"nothing is known any more": {"a:1", "", true, false},
		"it moves":                  {"a:1", "b:1", true, true},
		"it moves, between tries":   {"a:1", "b:1", false, true},
		"it is heard of":            {"", "a:1", false, true},
	} {
		var g gossip
		us, k := inside(func(c *Config) { c.Address = g.of })
		ctx, cancel := context.WithCancelCause(t.Context())
		g.set(tc.last)
		if got := k.begin(cancel); got != tc.last {
			t.Errorf("%s: the attempt goes to %q", what, got)
		}
		if !tc.up {
			k.end()
		}
		g.set(tc.now)
		us.Readdress()
		if ended := errors.Is(context.Cause(ctx), errMoved); ended != (tc.anew && tc.up) || len(k.heard) == 1 != tc.anew {
			t.Errorf("%s: the link ends: %t, and connects anew: %t", what, ended, len(k.heard) == 1)
		}
		cancel(nil)
	}
}

// TestMoveBesideAnAttempt: an attempt that looks up the old address just as the address
// changes does not go on to it.
func TestMoveBesideAnAttempt(t *testing.T) {
	var us *Links
	var k *link
	looked, waits := false, false
	us, k = inside(func(c *Config) {
		c.Address = func(core.SiteID) string {
			if looked {
				return "b:1"
			}
			looked = true
			// Another goroutine hears of the change during this look.
			if waits = !k.aim.TryLock(); !waits {
				k.aim.Unlock()
				us.Readdress()
			}
			return "a:1"
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	k.begin(cancel)
	if waits {
		us.Readdress()
	}
	if !errors.Is(context.Cause(ctx), errMoved) {
		t.Error("the attempt goes on to the old address")
	}
}

// TestLaterNodeEndsTheLinkToAnEarlier: the greeting of a later node ends the link to an
// earlier node, though gossip tells nothing yet.
func TestLaterNodeEndsTheLinkToAnEarlier(t *testing.T) {
	for what, tc := range map[string]struct {
		reached, greets int64
		ends            bool
	}{
		"a later node":               {7, 9, true},
		"the node itself":            {7, 7, false},
		"a site of a single process": {7, 0, false},
		"before an answer":           {0, 9, false},
	} {
		us, k := inside(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		k.begin(cancel)
		if err := k.reach(tc.reached); err != nil {
			t.Fatal(err)
		}
		if _, err := us.follow("eu", tc.greets); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if ends := errors.Is(context.Cause(ctx), errOver); ends != tc.ends {
			t.Errorf("%s: the link ends: %t", what, ends)
		}
		cancel(nil)
	}
}

// TestEarlierNodeIsNotListenedTo: a node may bring up its link while a later node has its
// own. The earlier node's link ends, and is refused from then on without a change of the
// member's versions; the later node's link goes on. Nobody counts as refused.
func TestEarlierNodeIsNotListenedTo(t *testing.T) {
	var spoke []versions.Speaker
	var mu sync.Mutex
	heard := make(chan struct{}, 100)
	us, _ := inside(func(c *Config) {
		c.Speaks = func(_ core.SiteID, s versions.Speaker) error {
			mu.Lock()
			defer mu.Unlock()
			spoke = append(spoke, s)
			heard <- struct{}{}
			return nil
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bring := func(term int64) <-chan error {
		ended := make(chan error, 1)
		node, _ := inside(func(c *Config) { asEU(c); c.Term = term })
		stream := calledBy(ctx, helloOf(node))
		go func() { ended <- us.Link(stream) }()
		return ended
	}
	await := func(what string, ended <-chan error) {
		t.Helper()
		select {
		case err := <-ended:
			if status.Code(err) != codes.FailedPrecondition {
				t.Errorf("%s ends with %v", what, err)
			}
		case <-time.After(limit):
			t.Fatalf("%s does not end", what)
		}
	}
	first := bring(7)
	<-heard
	second := bring(9)
	<-heard
	await("the link of the earlier node", first)
	await("another link of the earlier node", bring(7))
	bring(9)
	<-heard
	select {
	case err := <-second:
		t.Errorf("the link of the later node ends with %v", err)
	default:
	}
	if n := len(spoke); n != 3 {
		t.Errorf("versions were told %d times", n)
	}
	if r := us.Refusals(); len(r) != 0 {
		t.Errorf("refused are %v", r)
	}
}

// TestEarlierNodeAnswers: a link to a node from which another has taken over does not come
// up, and the versions of the node do not count.
func TestEarlierNodeAnswers(t *testing.T) {
	us, k := inside(func(c *Config) {
		c.Speaks = func(core.SiteID, versions.Speaker) error { t.Error("it is listened to"); return nil }
	})
	if _, err := us.follow("eu", 9); err != nil {
		t.Fatal(err)
	}
	node, _ := inside(func(c *Config) { asEU(c); c.Term = 7 })
	err := k.introduce(called{
		send: func(*peerv1.LinkRequest) error { return nil },
		recv: func() (*peerv1.LinkResponse, error) { return &peerv1.LinkResponse{Hello: node.hello()}, nil },
	}, func(error) {})
	if !errors.Is(err, errOver) {
		t.Errorf("it is introduced: %v", err)
	}
}
