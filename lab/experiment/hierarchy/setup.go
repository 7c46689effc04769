package hierarchy

import (
	"github.com/samya-db/samya/kvpart/sched"
)

// Way says who runs requests.
type Way string

// The ways.
const (
	// Workers: those who make requests put them into queues of partitions.
	Workers Way = "workers"
	// Callers: they run them, as those of a site do.
	Callers Way = "callers"
	// Stored: they hand them to an engine with a store on disk.
	Stored Way = "stored"
)

// Placement says which entities belong to which partition.
type Placement string

// The placements.
const (
	Hash       Placement = "hash"
	RoundRobin Placement = "round robin"
	Learnt     Placement = "learnt"
)

// Root says what stands above all organisations.
type Root string

// The roots.
const (
	NoRoot    Root = "none"
	WholeRoot Root = "whole"
	SplitRoot Root = "split"
)

// setup is what is measured.
type setup struct {
	Way       Way       `json:"way"`
	Placement Placement `json:"placement"`
	// Above is the root.
	Above Root `json:"root"`
	// Zipf: some leaves are wanted much more often than others.
	Zipf bool `json:"zipf,omitempty"`
	// Root: there is one.
	Root bool `json:"-"`
}

func of(way Way, placement Placement, above Root, zipf bool) setup {
	return setup{Way: way, Placement: placement, Above: above, Zipf: zipf, Root: above != NoRoot}
}

func (s setup) String() string { return string(s.Way) + ", " + s.load() }

// load is the setup but for who runs requests.
func (s setup) load() string {
	name := string(s.Placement)
	if s.Zipf {
		name += ", Zipf"
	}
	if s.Root {
		name += ", root " + string(s.Above)
	}
	return name
}

func (s setup) learns() bool { return s.Placement == Learnt }

// splits reports whether hubs may be split.
func (s setup) splits() bool { return s.learns() && s.Above != WholeRoot }

func (s setup) mode() sched.Mode {
	if s.Way == Workers {
		return sched.Workers
	}
	return sched.Callers
}

func (s setup) place() sched.Placement {
	if s.Placement == RoundRobin {
		return sched.RoundRobin
	}
	return sched.Hash
}

// setups are all, or those that goals are of and what shows them on a site.
func setups(quick bool) []setup {
	var all []setup
	for _, way := range []Way{Workers, Callers} {
		all = append(all, of(way, Hash, NoRoot, false), of(way, Learnt, NoRoot, false))
		if !quick {
			all = append(
				all,
				of(way, RoundRobin, NoRoot, false),
				of(way, Hash, NoRoot, true), of(way, Learnt, NoRoot, true),
				of(way, Hash, WholeRoot, false), of(way, Learnt, WholeRoot, false),
			)
		}
		all = append(all, of(way, Learnt, SplitRoot, false))
	}
	if !quick {
		all = append(all, of(Stored, Hash, NoRoot, false), of(Stored, Learnt, NoRoot, false))
	}
	return all
}
