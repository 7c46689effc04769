package libralab

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/kvpart/libra"
)

// The pace of merges: pairs a minute, and the age of a region that merges, in seconds.
const (
	mergePairs = 4
	mergeAge   = 600
)

// solidSeconds is how long a region that had no key to split at is not split.
const solidSeconds = 600

// splitRate is the requests a second above which a store splits a region on its own.
const splitRate = 3000

// decide makes the plans of a heartbeat. Moves that did not start since the last heartbeat
// are planned anew.
func (s *sim) decide(steady bool) error {
	for i := range s.queues {
		s.queues[i] = s.queues[i][:0]
	}
	if s.Policy.Splits == ByRate {
		s.splitByRate()
	}
	if !steady && !s.Policy.Unguarded {
		return nil
	}
	for _, r := range s.regions {
		if s.Policy.Splits != ByRate && (r.split != nil || r.windows == 0) {
			return nil // its parts are unknown
		}
	}
	ordered := false
	for by := range s.queues {
		some, err := s.plan(by)
		if err != nil {
			return err
		}
		ordered = ordered || some
	}
	if ordered {
		s.result.Rounds++
	}
	if s.Merge && s.now%60 == 0 {
		return s.merge()
	}
	return nil
}

// options returns the options of a scheduler.
func (s *sim) options(by int) libra.Options {
	p := &s.Policy
	o := libra.Options{Rule: p.Rule, Tolerance: s.Tolerance, Eager: p.Eager, Printed: p.Printed}
	if p.Rule == libra.Weighted {
		o.Weight = &p.Weight
	}
	if p.Parallel {
		o.Rule = [...]libra.Rule{libra.OnlyCPU, libra.OnlyDisk}[by]
	}
	return o
}

// units returns the regions as a scheduler knows them. Its own moves count as
// carried out; a region in an operation stays there.
func (s *sim) units(by int) []libra.Unit {
	everywhere := make([]int, s.Nodes)
	for j := range everywhere {
		everywhere[j] = j
	}
	units := make([]libra.Unit, len(s.regions))
	for i, r := range s.regions {
		units[i] = libra.Unit{Node: r.node, Load: r.seen, Barred: r.followers, Whole: s.Policy.Splits == Never || s.Policy.Splits == ByRate || r.high-r.low < 2 || s.now < r.solid}
		if s.Handover {
			units[i].Barred = nil
		}
		if r.to != nowhere && r.by == by {
			units[i].Node = r.to
		}
		if r.to != nowhere || r.split != nil {
			units[i].Barred, units[i].Whole = everywhere, true
		}
	}
	return units
}

// plan makes the plan of a scheduler, and reports whether regions are split. A plan is
// longer than the time to the next heartbeat, and its moves make other nodes hot for a
// while. While there are moves, only nodes with half of the present excess split regions.
func (s *sim) plan(by int) (splits bool, err error) {
	p, err := libra.NewPlan(s.options(by), s.Nodes, s.units(by))
	if err != nil {
		return false, fmt.Errorf("plan: %w", err)
	}
	now, excess := p.Loads(), p.Excess()
	var orders []libra.Action
	for {
		switch a := p.Step(); a.Kind {
		case libra.Migrate:
			s.queues[by] = append(s.queues[by], move{s.regions[a.Unit], a.To, by})
			continue
		case libra.Split:
			orders = append(orders, a)
			continue
		default:
		}
		break
	}
	least := excess / 2
	if len(s.queues[by]) == 0 {
		least = 0
	}
	for _, a := range orders {
		r := s.regions[a.Unit]
		if r.split != nil || max(now[a.From][libra.CPU], now[a.From][libra.Disk])-1 < least {
			continue
		}
		r.split, splits = &a, true
		if s.Policy.Splits == BySize {
			s.due(r, 1) // without a sample
		} else {
			s.due(r, sampleSeconds)
		}
	}
	return splits, nil
}

// start starts moves between free nodes. A node makes its moves in the order of the plan.
// Schedulers take turns.
func (s *sim) start() {
	waiting := 0
	for _, q := range s.queues {
		waiting += len(q)
	}
	if waiting == 0 {
		return
	}
	source, destination := make([]bool, s.Nodes), make([]bool, s.Nodes)
	for _, r := range s.regions {
		if r.to != nowhere {
			source[r.node], destination[r.to] = true, true
		}
	}
	for i := range s.queues {
		by := (i + s.now) % len(s.queues)
		waits := make([]bool, s.Nodes)
		s.queues[by] = slices.DeleteFunc(s.queues[by], func(m move) bool {
			r := m.region
			if r.to != nowhere || r.split != nil || m.to == r.node {
				return true // the other scheduler was first
			}
			if source[r.node] || destination[m.to] || waits[r.node] || waits[m.to] {
				waits[r.node], waits[m.to] = true, true
				return false
			}
			source[r.node], destination[m.to] = true, true
			r.to, r.by = m.to, m.by
			s.due(r, moveSeconds+int(s.copied(r)/moveBytes))
			return true
		})
	}
}

// due says when the operation of a region ends.
func (s *sim) due(r *region, seconds int) {
	r.ready = s.now + seconds
	s.next = min(s.next, r.ready)
}

// copied returns the bytes that the move of a region copies.
func (s *sim) copied(r *region) float64 {
	if slices.Contains(r.followers, r.to) {
		return 0
	}
	return s.Workload.stored(r.low, r.high)
}

// finish ends the moves and samples that are ready.
func (s *sim) finish() {
	if s.now < s.next {
		return
	}
	var parts []*region
	s.next = math.MaxInt
	for _, r := range s.regions {
		switch {
		case r.to != nowhere && s.now >= r.ready:
			s.result.Moves++
			s.result.Moved += s.copied(r)
			if at := slices.Index(r.followers, r.to); at >= 0 {
				r.followers = slices.Clone(r.followers) // parts of a region share them
				r.followers[at] = r.node
			}
			r.node, r.to = r.to, nowhere
		case r.split != nil && s.now >= r.ready:
			parts = append(parts, s.split(r)...)
		case r.to != nowhere || r.split != nil:
			s.next = min(s.next, r.ready)
		}
	}
	if len(parts) == 0 {
		return
	}
	s.result.Splits += len(parts)
	s.regions = append(s.regions, parts...)
	slices.SortFunc(s.regions, func(a, b *region) int { return a.low - b.low })
}

// split cuts a region, and returns all parts but the first, which is the region itself.
func (s *sim) split(r *region) []*region {
	a := r.split
	r.split = nil
	var keys []int
	switch s.Policy.Splits {
	case BySize:
		keys = []int{(r.low + r.high) / 2}
	case byLoad, ByRate:
		samples := s.sample(r.low, r.high, a.Dimension)
		keys = splitKeys(samples, r.low, r.high, a.Share, a.Parts)
	case Never:
	}
	var parts []*region
	for i, key := range keys {
		end := r.high
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		p := &region{low: key, high: end, node: r.node, followers: r.followers, to: nowhere, born: s.now}
		p.seen = r.seen
		s.weigh(p)
		parts = append(parts, p)
	}
	if len(keys) == 0 {
		r.solid = s.now + solidSeconds
	} else {
		r.high, r.born, r.windows = keys[0], s.now, 0
		s.weigh(r)
	}
	if s.Policy.Splits == ByRate { // both parts have half of the requests
		for _, p := range append(parts, r) {
			p.seen = libra.Load{r.seen[libra.CPU] / 2, r.seen[libra.Disk] / 2}
		}
	}
	return parts
}

// splitByRate splits regions with many requests, as a store without a plan does.
func (s *sim) splitByRate() {
	for _, r := range s.regions {
		if r.to == nowhere && r.split == nil && r.windows > 0 && r.flow.reads+r.flow.writes > splitRate && r.high-r.low > 1 && s.now >= r.solid {
			r.split = &libra.Action{Dimension: libra.CPU, Share: .5, Parts: 2}
			s.due(r, sampleSeconds)
		}
	}
}

// merge merges pairs of cold regions that are not new, and small enough together.
func (s *sim) merge() error {
	pairs, err := libra.Merges(s.options(0), s.Nodes, s.units(0), len(s.regions))
	if err != nil {
		return err
	}
	merged, gone := 0, make(map[*region]bool)
	for _, i := range pairs {
		a, b := s.regions[i], s.regions[i+1]
		old := s.now-max(a.born, b.born) >= mergeAge
		still := a.to == nowhere && b.to == nowhere && a.split == nil && b.split == nil
		if merged == mergePairs || !old || !still || s.Workload.stored(a.low, b.high) > regionBytes {
			continue
		}
		a.high, a.born, a.windows = b.high, s.now, 0
		s.weigh(a)
		a.seen = libra.Load{a.seen[libra.CPU] + b.seen[libra.CPU], a.seen[libra.Disk] + b.seen[libra.Disk]}
		a.windows = 1
		gone[b] = true
		merged++
	}
	s.result.Merges += merged
	s.regions = slices.DeleteFunc(s.regions, func(r *region) bool { return gone[r] })
	for i := range s.queues {
		s.queues[i] = slices.DeleteFunc(s.queues[i], func(m move) bool { return gone[m.region] })
	}
	return nil
}
