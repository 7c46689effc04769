package peer_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/peer"
)

// lines is a log that tests read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), of)
}

// until waits for cond.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(greetingTimeout)
	for !cond() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal(what)
		}
	}
}

// TestRefusedForItsVersion: two sites whose builds are two versions apart refuse each
// other, in words that both log once and tell. They are linked once the build of one has
// been exchanged.
func TestRefusedForItsVersion(t *testing.T) {
	b := newBook()
	var log lines
	var build atomic.Uint32
	build.Store(4)
	speaks := func() versions.Speaker {
		return versions.Speaker{Range: versions.Of(versions.Version(build.Load())), Cluster: 2, Begun: true}
	}
	start(t, b, "eu", func(c *peer.Config) { c.Versions = speaks })
	us := start(t, b, "us", func(c *peer.Config) {
		c.Versions = func() versions.Speaker { return versions.Speaker{Range: versions.Of(2), Cluster: 2, Begun: true} }
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	const says = "site eu has a build that speaks versions 3 to 4, site us a build that speaks versions 1 to 2: the build of site eu is too new"
	until(t, "us does not refuse eu", func() bool { return strings.Contains(us.links.Refusals()["eu"], says) })
	until(t, "eu does not refuse us", func() bool { return log.count("site eu refuses this site") == 1 })
	if n := log.count(says); n != 1 {
		t.Errorf("the refusal is logged %d times", n)
	}
	build.Store(3)
	us.awaitLinked("eu")
	if why := us.links.Refusals(); len(why) != 0 {
		t.Errorf("linked, and refused for %v", why)
	}
}

// TestVersionsComeFirst: a site hears of the versions of another before any message, by
// the link of either.
func TestVersionsComeFirst(t *testing.T) {
	b := newBook()
	told := versions.Speaker{Range: versions.Of(3), Cluster: 2, Begun: true}
	eu := start(t, b, "eu", func(c *peer.Config) { c.Versions = func() versions.Speaker { return told } })
	heard := make(chan versions.Speaker, 100)
	early := make(chan bool, 100)
	start(t, b, "us", func(c *peer.Config) {
		c.Speaks = func(from core.SiteID, s versions.Speaker) error {
			if from == "eu" {
				heard <- s
			}
			return nil
		}
		c.Receive = func(core.SiteID, []message.Envelope) { early <- len(heard) == 0 }
	})
	eu.awaitLinked("us")
	eu.links.Send([]message.Envelope{numbered("eu", "us", 1)})
	select {
	case bad := <-early:
		if bad {
			t.Error("a message comes before the versions of its sender")
		}
	case <-time.After(greetingTimeout):
		t.Fatal("nothing arrives")
	}
	if got := <-heard; got != told {
		t.Errorf("heard %+v, want %+v", got, told)
	}
}
