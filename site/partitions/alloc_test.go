package partitions_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// TestServingAllocatesNothing: an acquire that a partition serves allocates nothing but
// its record, and the memory for records grows in large steps.
func TestServingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has pools forget at random")
	}
	from, names := flat(100)
	x := newBench(t, 2, from, names)
	if got := testing.AllocsPerRun(100, func() { x.run(t, len(x.ins)) }) / float64(len(x.ins)); got > .1 {
		t.Errorf("%.2f allocations a request", got)
	}
}
