//go:build !linux

package wan

import (
	"context"
	"time"
)

// Exactly is Wait: only Linux has the timer.
func Exactly(ctx context.Context, d time.Duration) error { return Wait(ctx, d) }
