package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/reload"
)

// TestCreatedOnce: many first requests of a key create its entity once, and count exactly.
func TestCreatedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoLimits, nil)
		r.hold = make(chan struct{})
		var mu sync.Mutex
		told := map[string]int{}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				out, err := r.ShouldRateLimit(t.Context(), request("d", "a=x"))
				mu.Lock()
				defer mu.Unlock()
				told[fmt.Sprint(out.GetOverallCode(), err)]++
			})
		}
		synctest.Wait()
		close(r.hold)
		all.Wait()
		if r.calls["create"] != 1 || r.calls["get"] != 1 || told["OK <nil>"] != 5 || told["OVER_LIMIT <nil>"] != 15 {
			t.Errorf("%v, %v", r.calls, told)
		}
	})
}

// TestCallerGivesUp: a creation goes on for the next caller.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoLimits, nil)
		r.hold = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := r.ShouldRateLimit(ctx, request("d", "a=x")); apierr.ReasonOf(err) != apierr.DeadlineExceeded {
			t.Error(err)
		}
		close(r.hold)
		synctest.Wait()
		if got := r.ask(request("d", "a=x")); got != "ok: ok/4" || r.calls["create"] != 1 {
			t.Errorf("%s, %v", got, r.calls)
		}
	})
}

// TestBuckets: rules have buckets if the settings say so, but for months and years. A rule that
// has an entity already keeps its kind.
func TestBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 5}}, {key: b, rate_limit: {unit: month, requests_per_unit: 5}}]", func(s *Settings) { s.Kind = "bucket" })
		for _, key := range []string{"a=x", "a=x", "b=x"} {
			r.ask(request("d", key))
		}
		kinds := make(map[string]int)
		for _, e := range r.entities {
			kinds[e.GetPer()+" "+e.GetKind()]++
		}
		if kinds["1m bucket"] != 1 || kinds["1month window"] != 1 || len(kinds) != 2 {
			t.Errorf("%v", kinds)
		}
	})
	if err := (&Settings{Kind: "sliding"}).Validate(); err == nil {
		t.Error("sliding windows are taken")
	}
}

// TestAnotherCreates: another app manager has created the entity meanwhile, or changed it.
func TestAnotherCreates(t *testing.T) {
	for call, err := range map[string]error{
		"create": refuse.Exists("x"),
		"update": apierr.New(apierr.VersionMismatch, "another version"),
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, twoLimits, nil)
			if call == "update" {
				r.ask(request("d", "a=x"))
				r.write("rules.yaml", "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: 7}}]")
				r.look(t.Context(), new(reload.Fault))
			}
			r.fails[call] = []error{err}
			want := map[string]string{"create": "ok: ok/4", "update": "ok: ok/5"}[call]
			if got := r.ask(request("d", "a=x")); got != want || r.calls[call] != 2 {
				t.Errorf("%s: %s, %v", call, got, r.calls)
			}
		})
	}
}

// TestEntityIsGone: an entity that was deleted is created again.
func TestEntityIsGone(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	r.ask(request("d", "a=x;b=x"))
	clear(r.entities)
	clear(r.left)
	if got := r.ask(request("d", "a=x;b=x")); got != "ok: ok/4 ok/2" || r.calls["create"] != 4 {
		t.Errorf("%s, %v", got, r.calls)
	}
}

// TestForeignEntity: an entity of that name with other windows is left alone.
func TestForeignEntity(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	r.ask(request("d", "a=x"))
	r.entities["ratelimit/d/a/minute-keys"].Per = "1h"
	r.backend.(*Entities).known.Purge()
	if _, err := r.ShouldRateLimit(t.Context(), request("d", "a=x")); apierr.ReasonOf(err) != apierr.Internal {
		t.Error(err)
	}
}

// TestMaxEntities: the entities that are created are bounded, and those that exist go on.
func TestMaxEntities(t *testing.T) {
	hours := "domain: d\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: 5}}]"
	r := newRig(t, hours, func(s *Settings) { s.MaxEntities = 2 })
	for i, want := range []string{"ok: ok/4", "ok: ok/4"} {
		if got := r.ask(request("d", fmt.Sprintf("a=%d", i))); got != want {
			t.Error(got)
		}
	}
	if _, err := r.ShouldRateLimit(t.Context(), request("d", "a=2")); apierr.ReasonOf(err) != apierr.Overloaded {
		t.Error(err)
	}
	if got := r.ask(request("d", "a=1")); got != "ok: ok/3" {
		t.Error(got)
	}
	if len(r.entities) != 2 {
		t.Errorf("%d entities", len(r.entities))
	}
}

// TestWait: an acquire waits as long as the settings say, and less than its caller.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoLimits, nil)
		for _, timeout := range []time.Duration{0, time.Hour, 20 * time.Millisecond, 3 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			if timeout > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), timeout)
			}
			if _, err := r.ShouldRateLimit(ctx, request("d", "b="+timeout.String())); err != nil {
				t.Error(err)
			}
			cancel()
		}
		want := fmt.Sprint([]time.Duration{time.Second, time.Second, 15 * time.Millisecond, 0})
		if got := fmt.Sprint(r.waits); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestKeyRefused: what no site has of a key is refused without another question, until the
// time that the sites told.
func TestKeyRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, twoLimits, nil)
		r.ask(request("d", "a=x*5"))
		for _, step := range []struct {
			request, want string
			asked         int
		}{{"a=x*2", "over: over/0", 1}, {"a=x*2", "over: over/0", 0}, {"a=x*3", "over: over/0", 0}, {"a=x", "over: over/0", 1}, {"a=y", "ok: ok/4", 1}} {
			before := r.calls["acquire"]
			if got := r.ask(request("d", step.request)); got != step.want || r.calls["acquire"]-before != step.asked {
				t.Errorf("%+v: %s, asked %d times", step, got, r.calls["acquire"]-before)
			}
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		r.left["ratelimit/d/a/minute-keys/x"] = 5
		if got := r.ask(request("d", "a=x*2")); got != "ok: ok/3" {
			t.Error(got)
		}
		// A site that was away may have tokens: it is asked soon, and not when the window ends.
		away := refuse.NoTokens("ratelimit/d/a/minute-keys/z", "us", 2, 0, time.Minute)
		away.Elsewhere = true
		r.fails["acquire"] = []error{away}
		for _, want := range []string{"over: over/0", "over: over/0", "ok: ok/3"} {
			if want == "ok: ok/3" {
				time.Sleep(time.Second) //nolint:forbidigo // in a bubble
			}
			if got := r.ask(request("d", "a=z*2")); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}
