package explore

import (
	"context"
	"runtime"
	"time"
)

// Options limit a search and say how it reports.
type Options struct {
	Bounds Bounds
	// MaxStates stops a search that has found so many states; 0 for none.
	MaxStates int
	// Budget stops a search that has gone on for so long; 0 for none.
	Budget time.Duration
	// HealEvery heals every n-th state, of at most HealMost; 0 for none. Early states are
	// healed many times as often, so that small searches heal some. Healing runs the real
	// time-outs, so it costs far more than a state.
	HealEvery, HealMost int
	// Ignore names invariants that are not checked, to see which other invariant finds
	// the same bug.
	Ignore []string
	// Progress, if set, is called now and then.
	Progress func(Progress)
}

// Run searches until nothing new is found, an invariant is violated, the limit of states
// or of time is reached, or the context ends. The context's end is the only error.
func Run(ctx context.Context, v Variant, o Options) (*Result, error) {
	s := &search{
		Options: o, variant: v, store: newStore(v), begun: time.Now(),
		ignore: make(map[string]bool),
	}
	for _, name := range o.Ignore {
		s.ignore[name] = true
	}
	err := s.run(ctx)
	r := &Result{
		Variant: v.Name(), States: len(s.seen.states), Transitions: s.transitions, Depth: s.depth(),
		SiteStates: len(s.store.cores), Messages: len(s.store.packets), Steps: len(s.store.results) - 1,
		Healed: s.healed, Violations: len(s.violations), Broken: s.violations, Trace: s.trace(),
		Seconds: time.Since(s.begun).Seconds(), Memory: memory(), Bounds: o.Bounds, Closed: s.closed,
	}
	return r, err
}

// memory returns the memory that the process has from the system, in bytes.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

type search struct {
	Options
	variant Variant
	store   *store
	seen    visited
	open    queue
	ignore  map[string]bool
	// requestsLast is the result of the variant's RequestsLast.
	requestsLast bool

	transitions int64
	healed      int
	closed      bool
	begun       time.Time

	violations []Violation
	// lost are the violations of a state that has lost its past since.
	lost []Violation
	// at is the state that violates, or the state before a violating step.
	at uint32
	// step is the result of the violating step; 0 if there is none.
	step uint32
}

func (s *search) run(ctx context.Context) error {
	var g global
	for i := range g.site {
		g.site[i] = s.store.full(full{core: s.store.core(i, s.variant.New(i))})
	}
	s.seen.store = s.store
	s.requestsLast = s.variant.RequestsLast()
	if s.store.watch == nil {
		s.store.watch = s.look
	}
	s.reach(s.store.whole(g), 0)
	next := time.Now().Add(time.Second)
	for turn := 0; ; turn++ {
		i, more := s.open.pop()
		if !more {
			break
		}
		if turn%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if s.Budget > 0 && time.Since(s.begun) >= s.Budget {
				return nil
			}
			if now := time.Now(); s.Progress != nil && now.After(next) {
				next = now.Add(time.Second)
				s.Progress(Progress{
					States: len(s.seen.states), Frontier: s.open.n,
					Transitions: s.transitions, Elapsed: now.Sub(s.begun),
				})
			}
		}
		if s.seen.gone[i] {
			continue
		}
		s.expand(i)
		if s.heals(i) {
			s.heal(i)
		}
		if s.violations != nil || s.MaxStates > 0 && len(s.seen.states) >= s.MaxStates {
			return nil
		}
	}
	s.closed = true
	return nil
}

// expand takes every step that is possible in a state.
func (s *search) expand(i uint32) {
	g := s.seen.states[i]
	s.successors(g, func(to global, site int, broken uint32) bool {
		s.transitions++
		if list := s.broken(s.store.results[broken].broken); list != nil {
			s.violations, s.at, s.step = list, i, broken
			return false
		}
		s.reach(s.store.after(to, site, g.site[site]), i)
		if s.lost != nil && s.violations == nil {
			s.violations, s.at = s.lost, uint32(len(s.seen.states)-1)
		}
		return s.violations == nil
	})
}

// successors calls f with each state that a step of a site leads to, before the other
// sites have answered. f also gets the site, and the result of a step that breaks an
// invariant, else 0.
func (s *search) successors(g global, f func(to global, site int, broken uint32) bool) {
	last := s.requestsLast && g.used.of(Acquire)+g.used.of(Release) > 0
	take := func(site int, sp span) bool {
		for n := sp.from; n < sp.to; n++ {
			e := &s.store.edges[n]
			to := g
			if last && e.cost != Acquire && e.cost != Release {
				continue
			}
			if !s.affordable(g.used, e.cost) {
				continue
			}
			to.used += e.cost.unit()
			if e.broken == 0 && e.to == g.site[site] {
				continue
			}
			to.site[site] = e.to
			if !f(to, site, e.broken) {
				return false
			}
		}
		return true
	}
	for site := range g.site {
		if !take(site, s.store.actsOf(g.site[site])) {
			return
		}
		for from := range g.site {
			if from == site || last {
				continue
			}
			box := s.store.fulls[g.site[from]].out[site]
			if !take(site, s.store.pair(g.site[site], box).next) {
				return
			}
		}
	}
}

func (s *search) affordable(u used, c Cost) bool {
	switch c {
	case Crash:
		return u.of(c) < s.Bounds.Crashes
	case Acquire:
		return u.of(c) < s.Bounds.Acquires
	case Release:
		return u.of(c) < min(s.Bounds.Releases, u.of(Acquire))
	case Loss:
		return u.of(c) < s.Bounds.Losses
	default:
		return true
	}
}

// reach notes a whole state and checks it if its cores have not been together
// before: invariants look at nothing else.
func (s *search) reach(g global, parent uint32) {
	groups := s.seen.groups
	if !s.seen.add(g, parent) {
		return
	}
	i := uint32(len(s.seen.states) - 1)
	rank := 0
	for _, id := range g.site {
		rank += s.store.cores[s.store.fulls[id].core].rank
	}
	s.open.push(rank, i)
	if s.seen.groups == groups {
		return
	}
	if broken := s.broken(s.variant.Check(s.nodes(g))); broken != nil {
		s.violations, s.at = broken, i
	}
}

// heals reports whether a state is to be healed.
func (s *search) heals(i uint32) bool {
	if s.HealEvery == 0 || s.healed >= s.HealMost || s.violations != nil {
		return false
	}
	every := s.HealEvery
	if int(i) < healOften*every {
		every = max(1, every/healOften)
	}
	return int(i)%every == 0
}

// healOften is how many times as often the first states are healed.
const healOften = 50

// look checks a state that is about to lose its past.
func (s *search) look(g global) {
	if s.lost == nil {
		s.lost = s.broken(s.variant.Check(s.nodes(g)))
	}
}

func (s *search) heal(i uint32) {
	s.healed++
	if broken := s.broken(s.variant.Heal(s.nodes(s.seen.states[i]))); broken != nil {
		s.violations, s.at = broken, i
	}
}

func (s *search) nodes(g global) (nodes [Sites]Node) {
	for i, id := range g.site {
		nodes[i] = s.store.cores[s.store.fulls[id].core].node
	}
	return nodes
}

// broken leaves out ignored invariants.
func (s *search) broken(list []Violation) []Violation {
	if len(s.ignore) == 0 {
		return list
	}
	var kept []Violation
	for _, v := range list {
		if !s.ignore[v.Invariant] {
			kept = append(kept, v)
		}
	}
	return kept
}

// depth returns the largest number of steps by which a state was found.
func (s *search) depth() int {
	depths := make([]uint16, len(s.seen.states))
	deepest := uint16(0)
	for i := 1; i < len(depths); i++ {
		depths[i] = depths[s.seen.parent[i]] + 1
		deepest = max(deepest, depths[i])
	}
	return int(deepest)
}
