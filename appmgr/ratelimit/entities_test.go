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
				r.look(t.Context(), "")
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
	if got := r.ask(request("d", "a=x;b=x")); got != "ok: ok/4 ok/2" || r.calls["create"] != 4 {
		t.Errorf("%s, %v", got, r.calls)
	}
}

// TestForeignEntity: an entity of that name with other windows is left alone.
func TestForeignEntity(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	r.ask(request("d", "a=x"))
	r.entities["ratelimit/d/a.x/minute"].Per = "1h"
	r.backend.(*Entities).known.Purge()
	if _, err := r.ShouldRateLimit(t.Context(), request("d", "a=x")); apierr.ReasonOf(err) != apierr.Internal {
		t.Error(err)
	}
}

// TestMaxEntities: the entities that are created are bounded, and those that exist go on.
func TestMaxEntities(t *testing.T) {
	r := newRig(t, twoLimits, func(s *Settings) { s.MaxEntities = 2 })
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
