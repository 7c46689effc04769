package sites

import (
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// rig is three sites in a world, with their answers.
type rig struct {
	*Sites
	t        *testing.T
	w        *virtual.World
	outcomes map[int32]virtual.Outcome
	at       map[int32]time.Duration
}

func newRig(t *testing.T, limit int, configure func(*core.Config)) *rig {
	t.Helper()
	r := &rig{
		Sites: New(configure), t: t, outcomes: make(map[int32]virtual.Outcome), at: make(map[int32]time.Duration),
		w: virtual.New(virtual.Options{
			Places: []string{"us", "as", "eu"}, Network: wan.Samya(), Seed: 1,
			Service: 2 * time.Microsecond, Commit: 300 * time.Microsecond,
		}),
	}
	err := r.Start(r.w, limit, func(q *virtual.Request, o virtual.Outcome) {
		if _, twice := r.outcomes[q.Of]; twice {
			t.Errorf("request %d is answered twice", q.Of)
		}
		r.outcomes[q.Of], r.at[q.Of] = o, r.w.Now()
	})
	if err != nil {
		t.Fatal(err)
	}
	r.w.Until(virtual.Lead)
	return r
}

// ask makes count requests of a kind at a place, numbered from of on, and lets the time
// then pass.
func (r *rig) ask(kind virtual.Kind, p virtual.Place, of int32, count int, then time.Duration) {
	for i := range count {
		r.Handle(&virtual.Request{
			Kind: kind, Of: of + int32(i), Place: p, Due: r.w.Now(), Deadline: r.w.Now() + 5*time.Second, //nolint:gosec // few
		})
	}
	r.w.Until(r.w.Now() + then)
}

// crash and restart do so to a place of the world.
func (r *rig) crash(p virtual.Place)   { r.w.Crash(p); r.Crashed(p) }
func (r *rig) restart(p virtual.Place) { r.w.Restart(p); r.Restarted(p) }

// granted counts the grants.
func (r *rig) granted() int {
	n := 0
	for _, o := range r.outcomes {
		if o == virtual.Granted {
			n++
		}
	}
	return n
}

// refuse has sites move no tokens.
func refuse(c *core.Config) { c.Trigger, c.Admission, c.Strategy = "reactive", "refuse", "instance" }

// TestRestored: a restarted site still has its durable grants, and gives out no more
// tokens than it had. A grant that was not durable never happened.
func TestRestored(t *testing.T) {
	r := newRig(t, 30, refuse)
	r.ask(virtual.Acquire, 0, 0, 4, time.Second)
	r.ask(virtual.Acquire, 0, 10, 3, 100*time.Microsecond)
	if r.granted() != 4 || r.Out() != 4 {
		t.Fatalf("%d granted, %d out", r.granted(), r.Out())
	}
	r.crash(0)
	r.w.Until(r.w.Now() + time.Second)
	r.restart(0)
	r.ask(virtual.Acquire, 0, 20, 10, 2*time.Second)
	if r.granted() != 10 || r.Out() != 10 {
		t.Errorf("%d granted, %d out: the site had ten", r.granted(), r.Out())
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// TestUnsound: books that do not add up, or a site that is down, are seen.
func TestUnsound(t *testing.T) {
	for what, spoil := range map[string]func(r *rig){
		"29 tokens, the limit is 30": func(r *rig) {
			r.sites[1].books.Left--
			r.crash(1)
			r.restart(1)
		},
		"durable are 9": func(r *rig) { r.sites[2].books.Left-- },
		"is down":       func(r *rig) { r.crash(1) },
		"not_found":     func(r *rig) { r.sites[0].tells(&virtual.Request{Kind: virtual.Release}, answer.NotFound) },
	} {
		r := newRig(t, 30, refuse)
		spoil(r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestFree: tokens out of reach are not free.
func TestFree(t *testing.T) {
	r := newRig(t, 30, refuse)
	r.ask(virtual.Acquire, 2, 0, 4, time.Second)
	if r.Free(0) != 26 || r.Free(2) != 26 {
		t.Errorf("%d and %d free of 26", r.Free(0), r.Free(2))
	}
	r.w.Cut([]int{0, 0, 1})
	if r.Free(0) != 20 || r.Free(2) != 6 {
		t.Errorf("%d free on one side, %d on the other", r.Free(0), r.Free(2))
	}
}

// TestDetection: sites learn after DetectionTime which sites they reach no more.
func TestDetection(t *testing.T) {
	r := newRig(t, 30, nil)
	r.w.Cut([]int{0, 0, 1})
	r.w.Until(r.w.Now() + DetectionTime - time.Millisecond)
	if !r.sites[0].seemsUp("eu") {
		t.Error("known at once")
	}
	r.w.Until(r.w.Now() + time.Millisecond)
	if r.sites[0].seemsUp("eu") || !r.sites[0].seemsUp("as") || r.sites[2].seemsUp("us") {
		t.Errorf("us reaches %v, eu %v", r.sites[0].reach, r.sites[2].reach)
	}
}

// TestReads: a site answers a stale read at once. An exact read takes a round trip to the
// farthest site. Across a cut there is no exact number.
func TestReads(t *testing.T) {
	r := newRig(t, 30, nil)
	r.ask(virtual.ReadStale, 1, 0, 1, 0)
	r.ask(virtual.ReadExact, 1, 1, 1, time.Second)
	begun := virtual.Lead
	if took := r.at[0] - begun; r.outcomes[0] != virtual.Granted || took != 2*time.Microsecond {
		t.Errorf("a stale read: %v after %v", r.outcomes[0], took)
	}
	farthest := wan.Samya().RoundTrip("as", "eu")
	if took := r.at[1] - begun; r.outcomes[1] != virtual.Granted || took < farthest || took > farthest*5/4 {
		t.Errorf("an exact read: %v after %v", r.outcomes[1], took)
	}
	r.w.Cut([]int{0, 1, 0})
	begun = r.w.Now()
	r.ask(virtual.ReadExact, 1, 2, 1, 10*time.Second)
	if took := r.at[2] - begun; r.outcomes[2] != virtual.TimedOut || took < readTime || took > readTime+time.Millisecond {
		t.Errorf("across a cut: %v after %v", r.outcomes[2], took)
	}
	begun = r.w.Now()
	r.ask(virtual.ReadExact, 1, 3, 1, time.Second)
	if took := r.at[3] - begun; r.outcomes[3] != virtual.TimedOut || took > time.Millisecond {
		t.Errorf("across a cut that is known: %v after %v", r.outcomes[3], took)
	}
	if c := r.Counters(); c["reads inexact"] != 2 || c["shares asked"] != 9 {
		t.Errorf("%v", c)
	}
}

// TestBytes: messages are counted as they are encoded.
func TestBytes(t *testing.T) {
	r := newRig(t, 30, nil)
	r.ask(virtual.Acquire, 0, 0, 12, 5*time.Second)
	c := r.Counters()
	if c[virtual.Messages] == 0 || c[virtual.MessageBytes] < 10*c[virtual.Messages] || c[virtual.MessageBytes] > 200*c[virtual.Messages] {
		t.Errorf("%v bytes of %v messages", c[virtual.MessageBytes], c[virtual.Messages])
	}
	if c[virtual.Gossip] == 0 || c[virtual.GossipBytes] < 10*c[virtual.Gossip] {
		t.Errorf("%v bytes of %v messages of gossip", c[virtual.GossipBytes], c[virtual.Gossip])
	}
	if total := c[virtual.MessageBytes] + c[virtual.GossipBytes]; float64(r.w.Bytes) < total {
		t.Errorf("%d bytes were sent, of them %v counted", r.w.Bytes, total)
	}
}
