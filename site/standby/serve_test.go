package standby

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/site"
)

// TestUnconfirmed: once etcd has confirmed nothing for the time of a take-over, the active
// node takes no calls, and gives up all calls again and again, until etcd confirms that
// the node is active.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takeOver = 1500 * time.Millisecond
		a := &active{node: &node{cfg: Config{TakeOver: takeOver}, began: time.Now()}}
		a.heard()
		ctx, cancel := context.WithCancel(t.Context())
		given, ended := 0, make(chan struct{})
		go func() {
			a.Watch(ctx, func() { given++ })
			close(ended)
		}()
		after := func(d time.Duration, stalled bool, want int) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if err := a.Stalled(); errors.Is(err, errUnconfirmed) != stalled || given != want {
				t.Errorf("%v, %d times, want %v and %d", err, given, stalled, want)
			}
		}
		after(takeOver-time.Millisecond, false, 0)
		after(time.Millisecond, true, 1)
		after(takeOver/signsOfLife, true, 2)
		a.heard()
		after(takeOver/2, false, 2)
		a.heard()
		after(takeOver-time.Millisecond, false, 2)
		a.state.handing.Store(true)
		if err := a.Stalled(); !errors.Is(err, site.ErrHandedOver) {
			t.Errorf("while it is handed over: %v", err)
		}
		cancel()
		<-ended
	})
}
