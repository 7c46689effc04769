package appmgr

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestPortions: a caller that takes all it can get leaves room for each other caller's
// equal part, a caller alone has all but the last part, and memory comes back.
func TestPortions(t *testing.T) {
	for _, bound := range []int{1, 2, 7, 8, 64, 8192} {
		p := newPortions(bound)
		greedy := 0
		for p.begin("greedy") == nil {
			greedy++
		}
		if least := bound - bound/lastPart; greedy < least || greedy > bound {
			t.Errorf("bound %d: a caller alone has %d", bound, greedy)
		}
		others := 0
		for ; others < bound; others++ {
			if p.begin(fmt.Sprint("other ", others)) != nil {
				break
			}
		}
		if others != bound-greedy {
			t.Errorf("bound %d: %d others found room beside %d", bound, others, greedy)
		}
		if err := p.begin("greedy"); apierr.ReasonOf(err) != apierr.Overloaded {
			t.Errorf("bound %d: the fullest caller is answered %v", bound, err)
		}
		for i := range others {
			p.end(fmt.Sprint("other ", i))
		}
		for range greedy {
			p.end("greedy")
		}
		if p.all != 0 || len(p.of) != 0 {
			t.Errorf("bound %d: %d of %d callers stay", bound, p.all, len(p.of))
		}
	}
}

// TestEqualPortions: once a bound is nearly full, a caller that comes has its equal part
// and no more, and leaves a place for the one who comes next.
func TestEqualPortions(t *testing.T) {
	const bound, many = 64, 7
	p := newPortions(bound)
	for i := range bound - bound/lastPart {
		if err := p.begin(fmt.Sprint("early ", i%many)); err != nil {
			t.Fatal(err)
		}
	}
	late := 0
	for p.begin("late") == nil {
		late++
	}
	if want := bound / (many + 2); late != want {
		t.Errorf("who comes late has %d, its equal part is %d", late, want)
	}
	if err := p.begin("later"); err != nil {
		t.Errorf("there is no place for who comes next: %v", err)
	}
}

// TestWaitingIsBoundedByCaller: one caller's acquires that wait do not keep another
// caller's from being made.
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
		if r.service.waiting.all != 14 {
			t.Errorf("%d of one caller's acquires wait, want 14 of 16", r.service.waiting.all)
		}
		if n := len(refused); n != 50 {
			t.Errorf("%d were refused, want 50", n)
		}
		// As for any caller of another name.
		if err := r.service.waiting.begin("another"); err != nil {
			t.Errorf("another caller: %v", err)
		}
		r.service.waiting.end("another")
		cancel()
		for range 64 {
			if err := <-refused; apierr.ReasonOf(err) != apierr.Overloaded && !strings.Contains(string(apierr.ReasonOf(err)), "CANCELED") {
				t.Errorf("%v", err)
			}
		}
		if n := r.service.waiting.all; n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}
