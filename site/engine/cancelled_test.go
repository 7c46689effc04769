package engine

import (
	"testing"

	"github.com/samya-db/samya/site/core"
)

// TestCancelledInputsAreNotPutBack: otherwise an acquire that was cancelled while
// partitions had it would wait for tokens with nobody to tell.
func TestCancelledInputsAreNotPutBack(t *testing.T) {
	open, given := &Call{open: true}, new(Call)
	for _, tc := range []struct {
		in   core.Input
		want bool
	}{
		{&core.Acquire{Call: open}, false},
		{&core.Acquire{Call: given}, true},
		{&core.AcquireAll{Call: open}, false},
		{&core.AcquireAll{Call: given}, true},
		// A release is done all the same: its tokens are nobody's.
		{&core.Release{Call: given}, false},
		{&core.Cancel{Call: given}, false},
		{core.Stop{}, false},
		{core.Deliver{}, false},
	} {
		if got := cancelled(tc.in); got != tc.want {
			t.Errorf("%T: %v", tc.in, got)
		}
	}
}
