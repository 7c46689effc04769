package seats

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTell: a watcher gets the list at once and after each change, whichever channel tells
// of it, and signs of life while nothing changes.
func TestTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The watch is another goroutine, woken by its own timers.
		var mu sync.Mutex
		var changed [2]chan struct{}
		version, broken := uint64(1), error(nil)
		look := func(context.Context) (*samyav1.ListMembersResponse, [2]<-chan struct{}, error) {
			mu.Lock()
			defer mu.Unlock()
			changed = [2]chan struct{}{make(chan struct{}), make(chan struct{})}
			return list(version, seat("a", member, "")), [2]<-chan struct{}{changed[0], changed[1]}, broken
		}
		var lists, signs int
		send := func(m *samyav1.WatchMembersResponse) error {
			mu.Lock()
			defer mu.Unlock()
			if signs++; m.GetList() != nil {
				lists, signs = lists+1, signs-1
			}
			return nil
		}
		ended := make(chan error)
		go func() { ended <- Tell(t.Context(), look, send) }()
		told := func(what string, wantLists, wantSigns int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if lists != wantLists || signs != wantSigns {
				t.Errorf("%s: %d lists and %d signs of life, want %d and %d", what, lists, signs, wantLists, wantSigns)
			}
		}
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		told("at once", 1, 0)
		pass(time.Second)
		change := func(i int, next uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			version, broken = next, err
			close(changed[i])
		}
		for i := range 2 {
			change(i, uint64(2+i), nil)
			pass(time.Second)
			told("after a change", 2+i, 0)
		}
		change(0, 3, nil)
		pass(time.Second)
		told("after a change of nothing", 3, 0)
		pass(4 * Alive)
		told("while nothing changes", 3, 4)
		none := errors.New("no list")
		change(1, 3, none)
		if err := <-ended; !errors.Is(err, none) {
			t.Errorf("a watch without a list ends with %v", err)
		}
	})
}

// TestTellEnds: a watch ends with its caller, and at the first message that cannot be sent.
func TestTellEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := func(context.Context) (*samyav1.ListMembersResponse, [2]<-chan struct{}, error) {
			return list(1, seat("a", member, "")), [2]<-chan struct{}{}, nil
		}
		gone, refuses := errors.New("the caller has gone"), errors.New("it takes nothing")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(gone) })
		if err := Tell(ctx, look, func(*samyav1.WatchMembersResponse) error { return nil }); !errors.Is(err, gone) {
			t.Errorf("a caller that has gone: %v", err)
		}
		if err := Tell(t.Context(), look, func(*samyav1.WatchMembersResponse) error { return refuses }); !errors.Is(err, refuses) {
			t.Errorf("a caller that takes nothing: %v", err)
		}
	})
}
