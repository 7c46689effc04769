package kvpart_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/internal/waittest"
)

// looked is a context that ends when it has been looked at a number of times.
type looked struct {
	context.Context
	left atomic.Int64
}

func (l *looked) Err() error {
	if l.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A scan that runs ends soon after its context.
func TestScansEndEarly(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		s := open(t, kvpart.Options{Strategy: c.strategy, Partitions: 2, Backend: c.backend, Dirs: c.options(t).Dirs})
		defer closing(t, s)
		const keys = 4096
		var all []string
		for i := range keys {
			all = append(all, fmt.Sprintf("%04d", i))
		}
		if err := s.Execute(t.Context(), all, func(tx kvpart.Tx) error {
			for _, key := range all {
				if err := tx.Put(key, []byte("value")); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ctx := &looked{Context: context.Background()}
		ctx.left.Store(8) // a few before it runs
		if pairs, err := s.Scan(ctx, "", keys, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d pairs, %v", len(pairs), err)
		}
		if pairs, err := s.Scan(t.Context(), "", keys, nil); err != nil || len(pairs) != keys {
			t.Errorf("%d pairs, %v", len(pairs), err)
		}
	})
}

// A request that waits for a long one gives up at the end of its context.
func TestWaitsUntilTheEnd(t *testing.T) {
	for _, strategy := range []kvpart.Strategy{kvpart.Bare, kvpart.Soft, kvpart.Hard} {
		s := openNested(t, strategy)
		inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			left <- s.Execute(context.Background(), []string{"a"}, func(kvpart.Tx) error { close(inside); <-leave; return nil })
		}()
		<-inside
		for what, use := range map[string]func(context.Context) error{
			"read":   func(ctx context.Context) error { _, err := s.Read(ctx, "a", nil); return err },
			"write":  func(ctx context.Context) error { return s.Write(ctx, "a", nil) },
			"delete": func(ctx context.Context) error { return s.Delete(ctx, "a") },
			"scan":   func(ctx context.Context) error { _, err := s.Scan(ctx, "a", 2, nil); return err },
			"execute": func(ctx context.Context) error {
				return s.Execute(ctx, []string{"a"}, func(kvpart.Tx) error { return nil })
			},
		} {
			waittest.Returns(t, what, func() {
				ctx, cancel := context.WithCancel(context.Background())
				if err := use(waittest.Context{Context: ctx, Do: cancel}); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: %v", strategy, what, err)
				}
			})
		}
		close(leave)
		if err := <-left; err != nil {
			t.Error(err)
		}
		closing(t, s)
	}
}
