package explore

import (
	"context"
	"fmt"
	"time"
)

// Options are the limits of a search and what it tells of itself.
type Options struct {
	Bounds Bounds
	// MaxStates stops a search that has found so many states; 0 for none.
	MaxStates int
	// HealEvery heals every n-th state, of at most HealMost; 0 for none. Healing
	// runs the real time-outs, so it costs far more than a state.
	HealEvery, HealMost int
	// Ignore names invariants that are not checked, to see which other finds the
	// same bug.
	Ignore []string
	// Progress, if set, is called now and then.
	Progress func(Progress)
}

// Progress is how far a search has come.
type Progress struct {
	States, Frontier int
	Transitions      int64
	Depth            int
	Elapsed          time.Duration
}

// Result is what a search has found.
type Result struct {
	Variant string `json:"variant"`
	// States are the distinct states of the whole system that were found, each
	// of them checked; Transitions are the steps taken between them.
	States      int   `json:"states"`
	Transitions int64 `json:"transitions"`
	// Depth is the largest number of steps from the start, those of sites that
	// only answer not counted.
	Depth int `json:"depth"`
	// SiteStates and Messages are the distinct states of single sites and the
	// distinct messages among them; Steps are calls of the real state machine.
	SiteStates int `json:"site_states"`
	Messages   int `json:"messages"`
	Steps      int `json:"steps"`
	// Healed states were let run on and came to rest.
	Healed     int         `json:"healed"`
	Violations []Violation `json:"violations"`
	Seconds    float64     `json:"seconds"`
	Bounds     Bounds      `json:"bounds"`
	// Closed says that no state within the bounds was left out.
	Closed bool `json:"closed"`
	// Trace leads from the start to the violation.
	Trace []string `json:"trace,omitempty"`
}

// Run searches until nothing new is found, a violation is, the limit of
// states is reached, or the context ends, which is its only error.
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
		Variant: v.Name(), States: len(s.seen.states), Transitions: s.transitions, Depth: s.depth,
		SiteStates: len(s.store.cores), Messages: len(s.store.packets), Steps: len(s.store.results) - 1,
		Healed: s.healed, Violations: s.violations, Seconds: time.Since(s.begun).Seconds(),
		Bounds: o.Bounds, Closed: s.closed, Trace: s.trace(),
	}
	if r.Violations == nil {
		r.Violations = []Violation{}
	}
	return r, err
}

type search struct {
	Options
	variant Variant
	store   *store
	seen    visited
	ignore  map[string]bool

	transitions int64
	depth       int
	healed      int
	closed      bool
	begun       time.Time

	violations []Violation
	// at is the state that violates, or the one before a step that does.
	at uint32
	// step is the result of that step, if it is one.
	step uint32
}

func (s *search) run(ctx context.Context) error {
	var g global
	for i := range g.site {
		g.site[i] = s.store.full(full{core: s.store.core(i, s.variant.New(i))})
	}
	s.reach(g, 0)
	levelEnd, next := 1, time.Now().Add(time.Second)
	for i := 0; i < len(s.seen.states); i++ {
		if i == levelEnd {
			levelEnd = len(s.seen.states)
			s.depth++
		}
		if i%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if now := time.Now(); s.Progress != nil && now.After(next) {
				next = now.Add(time.Second)
				s.Progress(Progress{
					States: len(s.seen.states), Frontier: len(s.seen.states) - i,
					Transitions: s.transitions, Depth: s.depth, Elapsed: now.Sub(s.begun),
				})
			}
		}
		s.expand(uint32(i))
		if s.HealEvery > 0 && i%s.HealEvery == 0 && s.healed < s.HealMost && s.violations == nil {
			s.heal(uint32(i))
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
	s.successors(g, func(to global, broken uint32) bool {
		s.transitions++
		if list := s.broken(s.store.results[broken].broken); list != nil {
			s.violations, s.at, s.step = list, i, broken
			return false
		}
		s.reach(to, i)
		return s.violations == nil
	})
}

// successors calls f with each state that a step of one site leads to, before
// the others have answered, and with the result of a step that breaks something.
func (s *search) successors(g global, f func(to global, broken uint32) bool) {
	take := func(site int, sp span) bool {
		for n := sp.from; n < sp.to; n++ {
			e := &s.store.edges[n]
			to := g
			if e.cost != Free {
				if !s.affordable(g, e.cost) {
					continue
				}
				to.used += 1 << (8 * uint32(e.cost))
			}
			if e.broken == 0 && e.to == g.site[site] {
				continue
			}
			to.site[site] = e.to
			if !f(to, e.broken) {
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
			if from == site {
				continue
			}
			box := s.store.fulls[g.site[from]].out[site]
			if !take(site, s.store.pair(g.site[site], box).next) {
				return
			}
		}
	}
}

func (s *search) affordable(g global, c Cost) bool {
	used := func(c Cost) int { return int(g.used >> (8 * uint32(c)) & 0xff) }
	switch c {
	case Crash:
		return used(c) < s.Bounds.Crashes
	case Acquire:
		return used(c) < s.Bounds.Acquires
	case Release:
		return used(c) < min(s.Bounds.Releases, used(Acquire))
	default:
		return true
	}
}

// reach notes a state and checks it if it is new.
func (s *search) reach(g global, parent uint32) {
	g = s.store.whole(g)
	if !s.seen.add(g, parent) {
		return
	}
	if broken := s.broken(s.variant.Check(s.nodes(g))); broken != nil {
		s.violations, s.at = broken, uint32(len(s.seen.states)-1)
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

// broken leaves out what is ignored.
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

// String is one line about a search under way.
func (p Progress) String() string {
	return fmt.Sprintf("%d states, %d to expand, %d transitions, depth %d, %.0f states/s",
		p.States, p.Frontier, p.Transitions, p.Depth, float64(p.States)/max(p.Elapsed.Seconds(), 1e-9))
}
