package peer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
)

const ms = time.Millisecond

// attempts notes the tries of a site to reach another. Attempt i takes takes[i], later
// attempts take no time.
type attempts struct {
	t     *testing.T
	began time.Time
	takes []time.Duration

	mu sync.Mutex
	at []time.Duration
}

// taken returns when the attempts since the last look were made.
func (a *attempts) taken() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.at
	a.at = nil
	return at
}

func (a *attempts) address(to core.SiteID) string {
	if to != "eu" {
		a.t.Errorf("the address of %q is asked for", to)
		return ""
	}
	a.mu.Lock()
	a.at = append(a.at, time.Since(a.began))
	var takes time.Duration
	if len(a.takes) > 0 {
		takes, a.takes = a.takes[0], a.takes[1:]
	}
	a.mu.Unlock()
	if takes > 0 {
		<-time.After(takes)
	}
	return ""
}

// attempting runs links that reach nobody, for d in a bubble.
func attempting(t *testing.T, d time.Duration, takes ...time.Duration) (a *attempts, k *link, stop func()) {
	t.Helper()
	a = &attempts{t: t, began: time.Now(), takes: takes}
	l, k := inside(func(c *Config) { c.Address = a.address })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	pass(t, d)
	synctest.Wait()
	return a, k, func() {
		cancel()
		<-done
	}
}

// TestPausesBetweenAttempts: the pause doubles up to 2 s. It begins anew when the member
// is heard of, and the end of the links waits for no pause.
func TestPausesBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, k, stop := attempting(t, 8000*ms)
		want := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 3150 * ms, 5150 * ms, 7150 * ms}
		if got := a.taken(); !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		k.hear()
		pass(t, 200*ms)
		synctest.Wait()
		if got, want := a.taken(), []time.Duration{8000 * ms, 8050 * ms, 8150 * ms}; !slices.Equal(got, want) {
			t.Errorf("attempts at %v after it is heard of at 8 s, want %v", got, want)
		}
		pass(t, 10*time.Second)
		before := time.Now()
		stop()
		if took := time.Since(before); took != 0 {
			t.Errorf("the end takes %v", took)
		}
	})
}

// TestPauseBeginsAnewAfterALongLink: a member that was linked for longer than the longest
// pause is tried again soon. After a shorter try the pause grows.
func TestPauseBeginsAnewAfterALongLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, stop := attempting(t, 5000*ms, 0, 0, 0, 3000*ms, 1000*ms)
		defer stop()
		want := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 3400 * ms, 4500 * ms, 4700 * ms}
		if got := a.taken(); !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
	})
}

// TestHearingWaitsForNobody: a member may bring its link up any number of times while
// this site has a link to it.
func TestHearingWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := inside(nil)
		for range 3 {
			k.hear()
		}
		if n := len(k.heard); n != 1 {
			t.Errorf("%d times heard are kept", n)
		}
		k.forget()
		k.forget()
		if n := len(k.heard); n != 0 {
			t.Errorf("%d times heard are kept, though forgotten", n)
		}
	})
}

// TestGreetingTakesItsTime: a member that does not greet is given up after 5 s; a link
// that is up is not.
func TestGreetingTakesItsTime(t *testing.T) {
	eu, _ := inside(asEU)
	for name, greets := range map[string]bool{"a silent member": false, "a member that greets": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, k := inside(nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				began := time.Now()
				err := k.introduce(called{
					send: func(*peerv1.LinkRequest) error { return nil },
					recv: func() (*peerv1.LinkResponse, error) {
						if greets {
							return &peerv1.LinkResponse{Hello: eu.hello()}, nil
						}
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(time.Hour):
							return nil, errors.New("the stream ended")
						}
					},
				}, cancel)
				if took := time.Since(began); !greets && (err == nil || took != greetingTimeout) {
					t.Errorf("after %v: %v", took, err)
				}
				pass(t, 2*greetingTimeout)
				switch cause := context.Cause(ctx); {
				case greets && (err != nil || cause != nil):
					t.Errorf("it greets: %v, and ends with %v", err, cause)
				case !greets && (cause == nil || !strings.Contains(cause.Error(), "no greeting")):
					t.Errorf("it ends with %v", cause)
				}
			})
		})
	}
}
