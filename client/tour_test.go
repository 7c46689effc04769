package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// toured returns a client of targets in these states of health. The client calls nobody.
func toured(healths ...health.Health) *Client {
	c := &Client{ctx: context.Background(), cfg: Config{Random: func() float64 { return 1 }}}
	for i, h := range healths {
		name := string(rune('a' + i))
		c.targets = append(c.targets, &target{Target: Target{Address: name}, site: name, known: true, health: h, changed: func() {}})
	}
	c.rerank()
	return c
}

// names returns the targets of a tour's round in order, and the targets after which the
// tour says that another comes.
func (t *tour) names() (names, more string) {
	for {
		at, another := t.target()
		if at == nil {
			return names, more
		}
		names += at.Address
		if another {
			more += at.Address
		}
	}
}

// TestTour: targets that are down are asked only if there is no other. Nobody counts on
// an answer of them.
func TestTour(t *testing.T) {
	up, down := health.Health{Reach: health.Up, RTT: 1}, health.Health{Reach: health.Down}
	for what, test := range map[string]struct {
		healths []health.Health
		site    string
		names   string
		more    string
	}{
		"all answer":                {[]health.Health{up, up, up}, "", "abc", "ab"},
		"one is down":               {[]health.Health{down, up, up}, "", "bc", "b"},
		"all but one are down":      {[]health.Health{down, up, down}, "", "b", ""},
		"all are down":              {[]health.Health{down, down}, "", "ab", ""},
		"not heard of":              {[]health.Health{{}, up}, "", "ba", "b"},
		"a site first":              {[]health.Health{up, up, up}, "c", "cab", "ca"},
		"the site is down":          {[]health.Health{down, up, up}, "a", "bc", "b"},
		"the site is no target":     {[]health.Health{up, up}, "z", "ab", "a"},
		"the site is not heard of":  {[]health.Health{up, {}, up}, "b", "bac", "ba"},
		"the site alone answers":    {[]health.Health{down, up}, "b", "b", ""},
		"the site is the first":     {[]health.Health{up, up}, "a", "ab", "a"},
		"the site is in the middle": {[]health.Health{up, up, up}, "b", "bac", "ba"},
	} {
		c := toured(test.healths...)
		before := slices.Clone(c.ranking.Load().order)
		for range 2 {
			tr := tour{c: c}
			tr.start(time.Now(), test.site)
			if names, more := tr.names(); names != test.names || more != test.more {
				t.Errorf("%s: goes to %q, more behind %q; want %q and %q", what, names, more, test.names, test.more)
			}
		}
		if !slices.Equal(before, c.ranking.Load().order) {
			t.Errorf("%s: a tour changes the ranking of all", what)
		}
	}
}

// TestOverloadsPass: the ranking is made anew when the first of the overloads has passed,
// and not before.
func TestOverloadsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		busy := func(d time.Duration) health.Health {
			return health.Health{Reach: health.Up, RTT: 1, OverloadedUntil: began.Add(d)}
		}
		c := toured(busy(5*time.Second), busy(3*time.Second), busy(4*time.Second), health.Health{Reach: health.Up, RTT: 1})
		first := c.ranking.Load()
		if !first.until.Equal(began.Add(3 * time.Second)) {
			t.Errorf("the ranking holds until %v from now", first.until.Sub(began))
		}
		for _, step := range []struct {
			at    time.Duration
			names string
		}{{0, "dabc"}, {2 * time.Second, "dabc"}, {3 * time.Second, "bdac"}, {4 * time.Second, "bcda"}, {9 * time.Second, "abcd"}} {
			<-time.After(time.Until(began.Add(step.at)))
			tr := tour{c: c}
			tr.start(time.Now(), "")
			if names, _ := tr.names(); names != step.names {
				t.Errorf("after %v it goes to %q, want %q", step.at, names, step.names)
			}
			if step.at < 3*time.Second && c.ranking.Load() != first {
				t.Errorf("after %v the ranking is made anew", step.at)
			}
		}
		if last := c.ranking.Load(); !last.until.IsZero() {
			t.Errorf("without an overload the ranking holds until %v", last.until)
		}
	})
}

// TestPause: pauses double up to the longest, and last as long as the targets ask for.
// They end with the call, its client, or at once if the deadline comes first.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := toured(health.Health{})
		ctx, stop := context.WithCancel(t.Context())
		c.ctx = ctx
		far := time.Now().Add(time.Hour)
		pause := func(tr *tour, ctx context.Context, deadline time.Time) (time.Duration, bool) {
			began := time.Now()
			ok := tr.pause(ctx, deadline, began)
			return time.Since(began), ok
		}
		tr := &tour{c: c}
		for n := range 15 {
			want := min(25*time.Millisecond<<n, 2*time.Second)
			if d, ok := pause(tr, t.Context(), far); d != want || !ok {
				t.Errorf("pause %d: %v, %t, want %v", n, d, ok, want)
			}
		}
		tr.retryAfter = 5 * time.Second
		if d, ok := pause(tr, t.Context(), far); d != 5*time.Second || !ok {
			t.Errorf("a pause that is asked for: %v, %t", d, ok)
		}
		if d, ok := pause(tr, t.Context(), time.Now().Add(5*time.Second)); d != 0 || ok {
			t.Errorf("a pause up to the deadline: %v, %t", d, ok)
		}
		given, giveUp := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, giveUp)
		if d, ok := pause(tr, given, far); d != time.Second || ok {
			t.Errorf("a pause whose caller gives up: %v, %t", d, ok)
		}
		time.AfterFunc(time.Second, stop)
		if d, ok := pause(tr, t.Context(), far); d != time.Second || ok {
			t.Errorf("a pause of a client that is closed: %v, %t", d, ok)
		}
	})
}

// TestUntil: a try has its own time if another target can be asked, beyond its wait at
// the site. It never has more time than the call.
func TestUntil(t *testing.T) {
	c := toured(health.Health{})
	c.cfg.TryTime = 2 * time.Second
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		call, wait time.Duration
		more       bool
		want       time.Duration
	}{
		{10 * time.Second, 0, true, 2 * time.Second},
		{10 * time.Second, 3 * time.Second, true, 5 * time.Second},
		{10 * time.Second, 0, false, 10 * time.Second},
		{time.Second, 0, true, time.Second},
		{10 * time.Second, 9 * time.Second, true, 10 * time.Second},
	} {
		if got := c.until(now.Add(test.call), now, test.wait, test.more).Sub(now); got != test.want {
			t.Errorf("of %v, with a wait of %v, another target %t: %v, want %v", test.call, test.wait, test.more, got, test.want)
		}
	}
}

// TestLearn: an answer changes the health of its target, and the longest advice of a
// round sets the pause behind the round. A try without an answer teaches nothing: the
// connection does.
func TestLearn(t *testing.T) {
	now := time.Unix(1000, 0)
	for what, test := range map[string]struct {
		fate  mux.Fate
		err   *apierr.Error
		reach health.Reach
		busy  bool
		pause time.Duration
	}{
		"overloaded":          {mux.Answered, apierr.Overload("a", 2*time.Second), health.Up, true, 2 * time.Second},
		"overloaded a little": {mux.Answered, apierr.Overload("a", 100*time.Millisecond), health.Up, true, time.Second},
		"stopping":            {mux.Answered, &apierr.Error{Reason: apierr.ShuttingDown}, health.Down, false, time.Second},
		"no tokens":           {mux.Answered, &apierr.Error{Reason: apierr.OutOfTokens, RetryAfter: 3 * time.Second}, health.Up, false, 3 * time.Second},
		"lost":                {mux.Lost, apierr.Overload("a", 2*time.Second), health.Up, false, time.Second},
		"never sent":          {mux.Unsent, &apierr.Error{Reason: apierr.ShuttingDown}, health.Up, false, time.Second},
	} {
		c := toured(health.Health{Reach: health.Up, RTT: 1})
		tr, at := &tour{c: c, retryAfter: time.Second}, c.targets[0]
		tr.learn(at, test.fate, test.err, now)
		if h := at.state(); h.Reach != test.reach || h.Overloaded(now) != test.busy || tr.retryAfter != test.pause {
			t.Errorf("%s: reach %d, overloaded %t, pause %v; want %d, %t, %v", what, h.Reach, h.Overloaded(now), tr.retryAfter, test.reach, test.busy, test.pause)
		}
	}
}

// TestEndOfAMovement: a movement ends at its last attempt and at its not_after, and asks
// nobody afterwards.
func TestEndOfAMovement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu, us := w.site("eu", near), w.site("us", near)
		for _, s := range []*server{eu, us} {
			s.answers(func(*samyav1.Operation) *samyav1.Result { return failed(apierr.Unknown("id", "eu", nil)) })
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			resumed := func(attempt uint32, notAfter time.Duration) AcquireOption {
				return Resume(&Error{RequestID: "id", Attempt: attempt, NotAfter: time.Now().Add(notAfter), Tried: []string{"us"}})
			}
			asked := eu.arrived() + us.arrived()
			_, err := c.Acquire(t.Context(), "acme/vm", 1, resumed(name.MaxAttempt, time.Minute))
			if n := eu.arrived() + us.arrived() - asked; n != 1 || !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the last attempt: %d asked, %v", n, err)
			}
			began := time.Now()
			_, err = c.Acquire(t.Context(), "acme/vm", 1, resumed(2, 500*time.Millisecond))
			if d := time.Since(began); d > time.Second || !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the end of the request: after %v, %v", d, err)
			}
		})
	})
}
