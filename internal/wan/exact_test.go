package wan_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/wan"
)

// TestExactly: a wait lasts as long as asked at least, also many at once and one after the
// other, and ends with its context.
func TestExactly(t *testing.T) {
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			for n := range 3 {
				d := time.Duration(i*n) * 10 * time.Microsecond
				began := time.Now()
				if err := wan.Exactly(t.Context(), d); err != nil || time.Since(began) < d {
					t.Errorf("%v took %v: %v", d, time.Since(began), err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	began := time.Now()
	if err := wan.Exactly(ctx, time.Hour); !errors.Is(err, context.Canceled) || time.Since(began) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if err := wan.Exactly(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if err := wan.Exactly(t.Context(), -1); err != nil {
		t.Errorf("no time: %v", err)
	}
	// A timer of a wait that was cut short is not used again.
	if err := wan.Exactly(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}

// BenchmarkWait tells how long waits of a quarter of a millisecond last.
func BenchmarkWait(b *testing.B) {
	for name, wait := range map[string]func(context.Context, time.Duration) error{"timer": wan.Wait, "exact": wan.Exactly} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := wait(b.Context(), 250*time.Microsecond); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
