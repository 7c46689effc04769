package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/samya-db/samya/internal/preset"
)

// logTo is a logger that writes lines to a channel. Lines beyond its room are lost.
func logTo(lines chan string) *slog.Logger {
	return slog.New(slog.NewTextHandler(lineTo(lines), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type lineTo chan string

func (w lineTo) Write(b []byte) (int, error) {
	select {
	case w <- string(b):
	default:
	}
	return len(b), nil
}

// TestAdvertisedAddress: others are told the address to advertise, not the listener's.
func TestAdvertisedAddress(t *testing.T) {
	us := start(t, Config{Self: site("us"), Advertise: "127.0.0.9:17946"})
	if n := us.Nodes(); us.Addr() != "127.0.0.9:17946" || len(n) != 1 || n[0].Gossip != us.Addr() {
		t.Errorf("it is at %s, says %+v", us.Addr(), n)
	}
}

// TestSettingsOfMemberlist: the label of the gossip names the cluster, settings left out
// keep the preset's values, and the seeds come from the start.
func TestSettingsOfMemberlist(t *testing.T) {
	for name, want := range map[preset.Name]*memberlist.Config{
		preset.Local: memberlist.DefaultLocalConfig(), preset.LAN: memberlist.DefaultLANConfig(),
		preset.WAN: memberlist.DefaultWANConfig(), "": memberlist.DefaultWANConfig(),
	} {
		self := site("us")
		self.Cluster = "prod"
		join := []string{"192.0.2.1:7946"}
		var got *memberlist.Config
		m, err := Start(t.Context(), Config{Self: self, Bind: "127.0.0.1:0", Join: join, Preset: name, tune: func(c *memberlist.Config) { got = c }})
		if err != nil {
			t.Fatal(err)
		}
		join[0] = "nowhere:1"
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if got.Name != "site/us" || got.Label != "samya/prod" || !slices.Equal(m.seeds, []string{"192.0.2.1:7946"}) {
			t.Errorf("%q goes by the name %q and the label %q, and calls %v", name, got.Name, got.Label, m.seeds)
		}
		if got.ProbeInterval != want.ProbeInterval || got.SuspicionMult != want.SuspicionMult || got.TCPTimeout != want.TCPTimeout || got.GossipInterval != want.GossipInterval {
			t.Errorf("%q probes each %v, want %v", name, got.ProbeInterval, want.ProbeInterval)
		}
		if p := m.pace; p.First >= p.Most || p.Most >= p.Steady || p.Steady > 30*time.Second {
			t.Errorf("%q calls after %v to %v, steadily after %v", name, p.First, p.Most, p.Steady)
		}
	}
}

// TestHowManySeeds: a node may have 64 seeds.
func TestHowManySeeds(t *testing.T) {
	c := Config{Self: site("us"), Bind: "127.0.0.1:0", Join: slices.Repeat([]string{"seed.example:7946"}, 64)}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Join = append(c.Join, "seed.example:7946")
	if err := c.Validate(); err == nil {
		t.Error("65 seeds are taken")
	}
}

// TestEndOfContextAlone: the end of the context closes a node that nobody closes.
func TestEndOfContextAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m, err := Start(ctx, Config{Self: site("us"), Bind: "127.0.0.1:0", Preset: preset.Local, tune: quick})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	await(t, "it is not closed", func() bool { return errors.Is(m.UpdateSelf(site("us"), time.Second), errClosed) })
	if err := m.Leave(time.Second); !errors.Is(err, errClosed) {
		t.Errorf("Leave: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestFailedStartFreesTheAddress: a failed start leaves no listener.
func TestFailedStartFreesTheAddress(t *testing.T) {
	addr := freeAddr(t)
	c := Config{Self: site("us"), Bind: addr, tune: func(c *memberlist.Config) { c.ProtocolVersion = 99 }}
	if _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), addr) {
		t.Fatalf("a wrong setting: %v", err)
	}
	start(t, Config{Self: site("us"), Bind: addr})
}

// mute keeps a node from saying anything unless it is asked.
func mute(c *memberlist.Config) {
	quick(c)
	c.ProbeInterval, c.GossipInterval, c.PushPullInterval = 0, 0, 0
	c.TCPTimeout = 10 * time.Second
}

// TestNobodyWaitsWithoutEnd: a time-out of zero is no wait without end, for an update as
// for leaving. Whoever leaves or updates learns that the word did not go out.
func TestNobodyWaitsWithoutEnd(t *testing.T) {
	begin := func(name string, join ...string) *Membership {
		m, err := Start(context.Background(), Config{Self: site(name), Bind: "127.0.0.1:0", Join: join, Preset: preset.Local, tune: mute})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	us := begin("us")
	eu := begin("eu", us.Addr())
	sees(t, us, "site/eu site/us")
	sees(t, eu, "site/eu site/us")
	n := site("eu")
	n.Load = 7
	for what, do := range map[string]func() error{
		"update": func() error { return eu.UpdateSelf(n, 0) },
		"leave":  func() error { return us.Leave(0) },
	} {
		ended := make(chan error, 1)
		go func() { ended <- do() }()
		select {
		case err := <-ended:
			if err == nil || errors.Is(err, errClosed) {
				t.Errorf("%s: %v, though it says nothing", what, err)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("%s does not end", what) // Nor would Close.
		}
	}
	for _, m := range []*Membership{us, eu} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// stranger is a node that is no samya node, and lies about itself.
func stranger(t *testing.T, name string, says Node) *memberlist.Memberlist {
	t.Helper()
	conf := memberlist.DefaultLocalConfig()
	mute(conf)
	conf.Name, conf.Label, conf.Delegate = name, "samya/test", newTable(says)
	conf.BindAddr, conf.BindPort, conf.Logger = "127.0.0.1", 0, log.New(io.Discard, "", 0)
	list, err := memberlist.Create(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Shutdown() })
	return list
}

// at is the address of a stranger.
func at(list *memberlist.Memberlist) []string {
	n := list.LocalNode()
	return []string{fmt.Sprintf("%s:%d", n.Addr, n.Port)}
}

// TestWhoIsAskedOfStrangers: a node with the label of the cluster and a false name is not
// let in. A node of another cluster brings nobody along.
func TestWhoIsAskedOfStrangers(t *testing.T) {
	lines := make(chan string, 10_000)
	us := start(t, Config{Self: site("us"), Logger: logTo(lines)})
	foreign := site("foreign")
	foreign.Cluster = "other"
	for what, tc := range map[string]struct {
		name   string
		says   Node
		brings string
		logged string
	}{
		"another's name":  {"site/eu", site("as"), "", "calls itself site/as"},
		"another cluster": {"site/foreign", foreign, "site/sa", "merge: " + errForeign.Error()},
	} {
		list := stranger(t, tc.name, tc.says)
		if tc.brings != "" {
			good := stranger(t, tc.brings, site(strings.TrimPrefix(tc.brings, "site/")))
			if _, err := good.Join(at(list)); err != nil {
				t.Fatal(err)
			}
			await(t, "the strangers do not find each other", func() bool { return list.NumMembers() == 2 })
		}
		awaitLine(t, lines, tc.logged, func() {
			_, _ = list.Join([]string{us.Addr()}) // It may learn that it is refused, or not.
		})
		if n := us.list.NumMembers(); n != 1 {
			t.Errorf("%s: %d members", what, n)
		}
	}
}

// TestProbesAreWord: a node that answers probes, and says nothing new, is seen again.
func TestProbesAreWord(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, us, "site/eu site/us")
	first := us.Sites()[0].LastSeen
	await(t, "it is not seen again", func() bool { return us.Sites()[0].LastSeen.After(first) })
	if got := eu.Sites()[0]; !got.Self {
		t.Errorf("%+v", got)
	}
}
