package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// Scenario is a named failure with its expected outcome. It runs on the same cores, disks
// and links as a seed of [Run], and under the same invariants. Only the failures and
// their times are by the script. A seed decides the delays of links and disks, and which
// sites the failure falls upon.
type Scenario struct {
	// Name is stable, About is a sentence.
	Name, About string
	// expected is the outcome that must happen, by mode; the scenario says nothing about
	// a missing mode.
	expected map[string]string
	// Seeds is how many seeds are run unless another number is asked for.
	Seeds int
	// strategy is the strategy of all sites; empty for instances alone.
	strategy string
	play     func(st *stage)
}

// Modes lists the modes that the scenario says something about.
func (sc *Scenario) Modes() []string {
	var list []string
	for _, mode := range scenarioModes {
		if sc.expected[mode] != "" {
			list = append(list, mode)
		}
	}
	return list
}

var scenarioModes = []string{"majority", "star", "auto"}

// Scenarios lists all scenarios.
func Scenarios() []Scenario {
	return slices.Concat(partitionScenarios(), asideScenarios(), []Scenario{downScenario(), everyEffectScenario()}, transferScenarios(), acrossScenarios(), treeScenarios())
}

// Figure is a number that a scenario yields, over all its seeds.
type Figure struct {
	Name string `json:"name"`
	// Unit is "ms", or empty for a count.
	Unit   string `json:"unit,omitempty"`
	Least  int64  `json:"least"`
	Median int64  `json:"median"`
	Most   int64  `json:"most"`
}

// String tells it as briefly as can be.
func (f Figure) String() string {
	unit := f.Unit
	if unit != "" {
		unit = " " + unit
	}
	if f.Least == f.Most {
		return fmt.Sprintf("%s %d%s", f.Name, f.Least, unit)
	}
	return fmt.Sprintf("%s %d to %d%s (median %d)", f.Name, f.Least, f.Most, unit, f.Median)
}

// ScenarioResult is the result of a scenario in a mode.
type ScenarioResult struct {
	Name     string   `json:"name"`
	Mode     string   `json:"mode"`
	Seeds    int      `json:"seeds"`
	Expected string   `json:"expected"`
	Happened string   `json:"happened"`
	Figures  []Figure `json:"figures"`
	OK       bool     `json:"ok"`
	// Problems tell the departures from the expected outcome, by seed.
	Problems []string `json:"problems"`
}

// Play runs the scenario in a mode, over a number of seeds; 0 for the scenario's own
// number.
func (sc *Scenario) Play(mode string, first uint64, seeds int) ScenarioResult {
	if seeds == 0 {
		seeds = sc.Seeds
	}
	r := ScenarioResult{Name: sc.Name, Mode: mode, Seeds: seeds, Expected: sc.expected[mode], Problems: []string{}}
	var all figures
	for n := range seeds {
		st := newStage(mode, cmp.Or(sc.strategy, instanceStrategy), first+uint64(n))
		sc.play(st)
		if st.violation != nil {
			st.problems = append(st.problems, fmt.Errorf("%s: %w", st.violation.Invariant, st.violation.Err))
		}
		for _, err := range st.problems {
			r.Problems = append(r.Problems, fmt.Sprintf("seed %d: %v", first+uint64(n), err))
		}
		for _, f := range st.figures {
			all.add(f.name, f.unit, f.values...)
		}
	}
	told := make([]string, 0, len(all))
	for _, f := range all {
		figure := f.sum()
		r.Figures = append(r.Figures, figure)
		told = append(told, figure.String())
	}
	r.Happened, r.OK = strings.Join(told, ", "), len(r.Problems) == 0
	return r
}

// figures are numbers by name, in the order in which they were first told.
type figures []samples

type samples struct {
	name, unit string
	values     []int64
}

func (f *figures) add(name, unit string, values ...int64) {
	i := slices.IndexFunc(*f, func(s samples) bool { return s.name == name })
	if i < 0 {
		i = len(*f)
		*f = append(*f, samples{name: name, unit: unit})
	}
	(*f)[i].values = append((*f)[i].values, values...)
}

func (s *samples) sum() Figure {
	slices.Sort(s.values)
	return Figure{
		Name: s.name, Unit: s.unit,
		Least: s.values[0], Median: s.values[len(s.values)/2], Most: s.values[len(s.values)-1],
	}
}

// stage is a cluster of five sites with a single entity, on which a scenario is played.
type stage struct {
	*sim

	mode     string
	figures  figures
	problems []error
}

const (
	stageEntity             = "e"
	stageLimit  core.Tokens = 500
	// stageShare is each site's first share.
	stageShare = stageLimit / 5
	// stageDelay is the longest way of a message, in milliseconds, without the delay that
	// the simulator adds by chance.
	stageDelay = 60
)

func newStage(mode, strategy string, seed uint64) *stage {
	o := Options{Seed: seed, Sites: 5, Protocol: mode, Strategy: strategy, Calm: true}
	st := &stage{sim: newSim(o), mode: mode}
	s := st.sim
	s.byHand = true
	s.chances = chances{sync: micros(1+s.r.IntN(10)) * millisecond, depth: 1 + s.r.IntN(3)}
	s.admin = &admin{s: s, names: []string{stageEntity}}
	for i := range s.nodes {
		for j := range i {
			s.latency[i][j] = micros(5+s.r.IntN(stageDelay-4)) * millisecond
			s.latency[j][i] = s.latency[i][j]
		}
		c := &s.nodes[i].cfg
		c.Offer, c.Policy, c.Forecast, c.Admission = "spare", "demand", "mean-rate", "wait"
		c.Trigger, c.Want, c.Wait = "reactive", "quantile", "all"
		c.Bin, c.MaxWaiting, c.MaxWaitingAll = 1000, 0, 0
	}
	for _, n := range s.nodes {
		n.boot()
	}
	st.run(2 * second)
	s.issue(&op{kind: create, entity: stageEntity, limit: stageLimit, wait: 5 * second, site: -1})
	st.run(8 * second)
	for _, n := range s.nodes {
		if n.drained.Books[stageEntity].Left != stageShare {
			st.wrong("%s begins with %d tokens", n.id, n.drained.Books[stageEntity].Left)
		}
	}
	return st
}

func (st *stage) wrong(format string, args ...any) {
	st.problems = append(st.problems, fmt.Errorf(format, args...))
}

// told notes a number, millis a time.
func (st *stage) told(name string, n int64)    { st.figures.add(name, "", n) }
func (st *stage) millis(name string, d micros) { st.figures.add(name, "ms", d/millisecond) }

func (st *stage) run(d micros) { st.runUntil(st.now + d) }

// until runs until something holds, to the millisecond, but no longer than most.
func (st *stage) until(most micros, holds func() bool) bool {
	for end := st.now + most; !holds(); st.run(millisecond) {
		if st.now >= end || st.violation != nil {
			return false
		}
	}
	return true
}

// asked is a request of a scenario.
type asked struct {
	op     *op
	answer *answer.Answer
	began  micros
	ended  micros
}

func (a *asked) ok() bool { return a.answer != nil && a.answer.Code == answer.OK }

func (a *asked) String() string {
	if a.answer == nil {
		return fmt.Sprintf("%v has no answer", a.op)
	}
	return fmt.Sprintf("%v is answered %v after %d ms", a.op, a.answer.Code, (a.ended-a.began)/millisecond)
}

func (st *stage) ask(p *op) *asked {
	a := &asked{op: p, began: st.now}
	p.once = true
	p.then = func(got *answer.Answer) {
		if a.ended = st.now; got != nil {
			a.answer = new(*got)
			if p.kind.acquires() && got.Code == answer.OK {
				st.observe.taken(p, got)
			}
		}
	}
	st.issue(p)
	return a
}

func (st *stage) acquire(site int, tokens core.Tokens, wait micros) *asked {
	return st.ask(&op{kind: acquire, entity: stageEntity, site: site, tokens: tokens, wait: wait})
}

func (st *stage) release(site int, tokens core.Tokens) *asked {
	st.observe.outstanding[stageEntity] -= tokens
	return st.ask(&op{kind: release, entity: stageEntity, site: site, tokens: tokens})
}

// split cuts all links between a side and the others.
func (st *stage) split(side ...int) {
	for i := range st.cut {
		for j := range st.cut {
			st.cut[i][j] = slices.Contains(side, i) != slices.Contains(side, j)
		}
	}
}

// detect tells every site which others it can reach.
func (st *stage) detect() {
	for _, n := range st.nodes {
		var up []core.SiteID
		for _, m := range st.nodes {
			if m != n && m.up && !st.cut[n.i][m.i] && !st.cut[m.i][n.i] {
				up = append(up, m.id)
			}
		}
		n.step(input.Reachable{Sites: up})
	}
}

// mend ends all that fails.
func (st *stage) mend() {
	st.sending = nil
	for i := range st.cut {
		clear(st.cut[i])
	}
	for _, n := range st.nodes {
		n.fuse = 0
		if !n.up {
			n.boot()
		}
	}
	st.healed = true
	st.detect()
}

// holds reports whether any of the sites has tokens set aside.
func (st *stage) holds(sites []int) bool { return st.setAside(sites) > 0 }

// setAside is how many slices the sites have set aside.
func (st *stage) setAside(sites []int) int {
	slices := 0
	for _, i := range sites {
		e := st.nodes[i].drained.Entities[stageEntity]
		if e.Protocol.Pledge != nil {
			slices++
		}
		for _, sl := range e.Star.Slices {
			if !sl.Committed {
				slices++
			}
		}
	}
	return slices
}

var allSites = []int{0, 1, 2, 3, 4}

// instances is how many instances a site has applied, by variant.
func (st *stage) instances(site int) (majority, star int64) {
	e := st.nodes[site].drained.Entities[stageEntity]
	return int64(e.Protocol.Applied), int64(e.Moved)
}

// allAcquired checks, after all failures have ended, that the cluster has come to rest
// and that nothing is set aside. Then a site can acquire every token that is not out, and
// not a token more.
func (st *stage) allAcquired() {
	st.run(20 * second)
	if st.holds(allSites) {
		st.wrong("tokens stay set aside")
	}
	st.agree()
	limit := st.nodes[0].drained.Entities[stageEntity].Limit
	if free := limit - st.out(); free > 0 {
		if a := st.acquire(st.r.IntN(5), free, 20*second); !st.until(30*second, a.ok) {
			st.wrong("%v", a)
		}
	}
	more := st.acquire(st.r.IntN(5), 1, 20*second)
	st.run(30 * second)
	if more.answer == nil || more.answer.Code != answer.OutOfTokens {
		st.wrong("with no token left, %v", more)
	}
	var left core.Tokens
	for _, n := range st.nodes {
		left += n.drained.Books[stageEntity].Left
	}
	if out := st.out(); left != 0 || out != limit || st.holds(allSites) {
		st.wrong("the books end with %d left and %d out of %d", left, out, limit)
	}
	st.told("tokens acquired in the end", int64(st.out()))
}

func (st *stage) out() core.Tokens {
	var sum core.Tokens
	for _, n := range st.nodes {
		sum += n.drained.Books[stageEntity].Net
	}
	return sum
}
