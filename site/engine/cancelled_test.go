package engine

import (
	"testing"

	"github.com/samya-db/samya/site/core/input"
)

// TestCancelledInputsAreNotPutBack: otherwise an acquire that was cancelled while
// partitions had it would wait for tokens with nobody to tell.
func TestCancelledInputsAreNotPutBack(t *testing.T) {
	open, given := &Call{open: true}, new(Call)
	for _, tc := range []struct {
		in   input.Input
		want bool
	}{
		{&input.Acquire{Call: open}, false},
		{&input.Acquire{Call: given}, true},
		{&input.AcquireAll{Call: open}, false},
		{&input.AcquireAll{Call: given}, true},
		// A release is done all the same: its tokens are nobody's.
		{&input.Release{Call: given}, false},
		{&input.Cancel{Call: given}, false},
		{input.Stop{}, false},
		{input.Deliver{}, false},
	} {
		if got := cancelled(tc.in); got != tc.want {
			t.Errorf("%T: %v", tc.in, got)
		}
	}
}
