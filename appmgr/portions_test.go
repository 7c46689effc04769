package appmgr

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestPortions: a refused caller is told to come back. A request that has ended no longer
// counts.
func TestPortions(t *testing.T) {
	p := newPortions(16)
	greedy, err := p.begin("greedy")
	for range 13 {
		if err != nil {
			t.Fatal(err)
		}
		greedy, err = p.begin("greedy")
	}
	if _, err = p.begin("greedy"); apierr.ReasonOf(err) != apierr.Overloaded {
		t.Errorf("the fullest caller is answered %v", err)
	}
	another, err := p.begin("another")
	if err != nil {
		t.Errorf("another caller: %v", err)
	}
	p.end(another)
	for range 14 {
		p.end(greedy)
	}
	if p.of.All() != 0 || p.of.Holders() != 0 {
		t.Errorf("%d of %d callers stay", p.of.All(), p.of.Holders())
	}
}

// TestWaitingIsBoundedByCaller: the waiting acquires of a caller leave room for the
// acquires of another caller.
func TestWaitingIsBoundedByCaller(t *testing.T) {
	inBubble(t, threeSites, func(c *Config) { c.MaxConcurrent = 16 }, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			slowly(f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		refused := make(chan error, 64)
		for range 64 {
			go func() {
				_, err := r.service.Acquire(ctx, &samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute)})
				refused <- err
			}()
		}
		synctest.Wait()
		if r.service.waiting.of.All() != 14 {
			t.Errorf("%d of one caller's acquires wait, want 14 of 16", r.service.waiting.of.All())
		}
		if n := len(refused); n != 50 {
			t.Errorf("%d were refused, want 50", n)
		}
		// As for any caller of another name.
		at, err := r.service.waiting.begin("another")
		if err != nil {
			t.Errorf("another caller: %v", err)
		}
		r.service.waiting.end(at)
		cancel()
		for range 64 {
			if err := <-refused; apierr.ReasonOf(err) != apierr.Overloaded && !strings.Contains(string(apierr.ReasonOf(err)), "CANCELED") {
				t.Errorf("%v", err)
			}
		}
		if n := r.service.waiting.of.All(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}
