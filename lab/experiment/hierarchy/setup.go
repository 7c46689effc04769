package hierarchy

import (
	"github.com/samya-db/samya/kvpart/sched"
)

// Way is the way in which requests run.
type Way string

// The ways.
const (
	// Workers: generators put requests into the queues of partitions.
	Workers Way = "workers"
	// Early is Workers with threads that wait for each other by busy-wait (kvpart/early).
	Early Way = "early"
	// Callers: generators run requests themselves, like callers in a site.
	Callers Way = "callers"
	// Stored: generators hand requests to an engine with a store on disk.
	Stored Way = "stored"
)

// Placement is the rule that places entities in partitions.
type Placement string

// The placements.
const (
	Hash       Placement = "hash"
	RoundRobin Placement = "round robin"
	Learnt     Placement = "learnt"
)

// Root is the kind of root above all organisations.
type Root string

// The roots.
const (
	NoRoot    Root = "none"
	WholeRoot Root = "whole"
	SplitRoot Root = "split"
)

// setup is a system to measure.
type setup struct {
	Way       Way       `json:"way"`
	Placement Placement `json:"placement"`
	// Above is the root.
	Above Root `json:"root"`
	// Zipf: clients want some leaves much more often than others.
	Zipf bool `json:"zipf,omitempty"`
	// Root reports whether there is a root.
	Root bool `json:"-"`
}

func of(way Way, placement Placement, above Root, zipf bool) setup {
	return setup{Way: way, Placement: placement, Above: above, Zipf: zipf, Root: above != NoRoot}
}

func (s setup) String() string { return string(s.Way) + ", " + s.load() }

// load names the setup without its way.
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

// splits reports whether hubs may split.
func (s setup) splits() bool { return s.learns() && s.Above != WholeRoot }

func (s setup) mode() sched.Mode {
	switch s.Way {
	case Workers:
		return sched.Workers
	case Early:
		return sched.Threads
	}
	return sched.Callers
}

func (s setup) place() sched.Placement {
	if s.Placement == RoundRobin {
		return sched.RoundRobin
	}
	return sched.Hash
}

// setups returns all setups, or with quick only the setups with a goal and their
// counterparts on a site.
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
		all = append(all, of(Early, Hash, NoRoot, false), of(Early, Learnt, NoRoot, false), of(Early, Hash, WholeRoot, false))
		all = append(all, of(Stored, Hash, NoRoot, false), of(Stored, Learnt, NoRoot, false))
	}
	return all
}
