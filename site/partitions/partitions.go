// Package partitions keeps the machines of a core's entities in partitions of
// kvpart, which serve side by side what needs the books of their entities only, and
// learns which of them belong together. It refuses to decide what becomes of a
// request: what no partition serves is passed on, for the core to step alone.
package partitions

import (
	"errors"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
)

// ErrOptions says that an option is out of its range; it is wrapped with which.
var ErrOptions = errors.New("bad option")

// Options says what to keep in how many partitions.
type Options struct {
	Core *core.Core
	// Count is how many partitions there are, from 1 to MaxCount.
	Count int
	// Mode says who runs requests.
	Mode sched.Mode
	// Policy says when entities are assigned anew; nil for never.
	Policy *control.Policy
	// Place says where new entities go.
	Place sched.Placement
	// Now is the site's time, and Clock one that does not go back.
	Now   func() core.Now
	Clock func() time.Duration
	// Seed is that of the cuts.
	Seed uint64
	// Pass takes the inputs that no partition serves. It may be called at the same
	// time, and must not block.
	Pass func(in core.Input)
}

// MaxCount bounds the partitions of a site.
const MaxCount = 64

// Stats is what the partitions did since they were made.
type Stats struct {
	// Partitions are their own figures, by number.
	Partitions []PartitionStats
	// Served counts the requests that partitions served, Cross those of them that
	// were of several partitions, and Passed those that none served.
	Served, Cross, Passed uint64
	// Imbalance is the load of the partition with most over the mean.
	Imbalance float64
	// Adaptive says whether entities are assigned anew by what is used together:
	// whether there is a policy.
	Adaptive bool
	// Control is what the controller did, Pause how long dispatch stood still.
	Control control.Stats
	Pause   sched.Pause
	// Split are the entities that are split, by name.
	Split []SplitStats
}

// PartitionStats are the figures of one partition.
type PartitionStats struct {
	// Entities is how many belong to it, Served the requests that it had a part in.
	Entities int
	Served   uint64
	// Queued is how many requests wait there.
	Queued int
}

// SplitStats are the figures of a split entity.
type SplitStats struct {
	Name string
	// Left is what each partition has of its tokens, as of the last look.
	Left []core.Tokens
	// Served counts the requests that took of its slots since it was split.
	Served uint64
}
