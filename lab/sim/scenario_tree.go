package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// treeScenarios are stories of entities that stand below others, and of acquires of
// several entities.
func treeScenarios() []Scenario {
	var list []Scenario
	for _, l := range []struct {
		name, about, expected string
		seeds                 int
		play                  func(st *stage)
	}{
		{
			"move-onto-less", "an entity of which 200 tokens are out is moved below one with a limit of 100, and 150 are given back at one site",
			"nothing is granted below until then, for want of the parent's tokens; then the 50 that are not out, and not one more",
			10, playMoveOntoLess,
		},
		{
			"subtree-deleted", "an entity with another below it is deleted while one site is cut off; all tokens of its parent are out of it",
			"what was out below comes back to the parent, and is acquired there; what was out at the site once that is back",
			10, playPruned,
		},
		{
			"moves-missed", "a site is down while its entities are moved and more changes are decided than sites remember",
			"back, it has the same tree as the others, and what is out there is out of the present parents", 2, playMovesMissed,
		},
		{
			"retry-of-several", "the answer to an acquire of three entities is lost, and the next attempt is granted elsewhere; one entity is moved meanwhile",
			"the first is undone for all of them", 20, playRetrySeveral,
		},
	} {
		list = append(list, Scenario{
			Name: l.name, About: l.about, Seeds: l.seeds, play: l.play,
			expected: map[string]string{"majority": l.expected, "star": l.expected, "auto": l.expected},
		})
	}
	return list
}

// decide has a change decided.
func (st *stage) decide(p *op) {
	p.wait, p.site = 10*second, 1
	if a := st.ask(p); !st.until(15*second, a.ok) {
		st.wrong("%v", a)
	}
	st.run(2 * second)
}

// grow creates an entity below a parent, "" for none.
func (st *stage) grow(name, parent string, limit core.Tokens) {
	st.admin.names = append(st.admin.names, name)
	st.decide(&op{kind: create, entity: name, parent: parent, limit: limit})
}

// of asks a site for tokens of an entity; giveBack gives some back.
func (st *stage) of(name string, site int, tokens core.Tokens, wait micros) *asked {
	return st.ask(&op{kind: acquire, entity: name, site: site, tokens: tokens, wait: wait})
}

func (st *stage) giveBack(name string, site int, tokens core.Tokens) {
	st.observe.outstanding[name] -= tokens
	if a := st.ask(&op{kind: release, entity: name, site: site, tokens: tokens}); !st.until(2*second, a.ok) {
		st.wrong("%v", a)
	}
}

// outOf is how many tokens of an entity all sites have out.
func (st *stage) outOf(name string) (sum core.Tokens) {
	for _, n := range st.nodes {
		sum += n.drained.Books[name].Net
	}
	return sum
}

// lacks expects that an acquire is refused for want of an entity's tokens.
func (st *stage) lacks(a *asked, lacking string) {
	answered := func() bool { return a.answer != nil }
	if !st.until(20*second, answered) || a.answer.Code != answer.OutOfTokens || a.answer.Lacking != lacking {
		st.wrong("not refused for want of %q: %v, %+v", lacking, a, a.answer)
	}
}

func playMoveOntoLess(st *stage) {
	st.grow("p", "", 100)
	st.grow("x", "", 500)
	for site := range 2 {
		if a := st.of("x", site, 100, 0); !st.until(second, a.ok) {
			st.wrong("%v", a)
		}
	}
	st.decide(&op{kind: move, entity: "x", parent: "p"})
	if out := st.outOf("p"); out != 200 {
		st.wrong("%d tokens are out of the parent", out)
	}
	st.lacks(st.of("x", 0, 1, 2*second), "p")
	st.giveBack("x", 2, 150)
	st.mend()
	began := st.now
	inDebt := func(n *node) bool { return n.has("p") < 0 || n.drained.Entities["p"].Debt > 0 }
	if !st.until(paid, func() bool { return !slices.ContainsFunc(st.nodes, inDebt) }) {
		st.wrong("debts of the parent are not paid")
	}
	st.millis("debts paid after", st.now-began)
	if a := st.of("x", 3, 50, 20*second); !st.until(25*second, a.ok) {
		st.wrong("%v", a)
	}
	st.lacks(st.of("x", 4, 1, 20*second), "p")
	st.finish(0)
}

func playPruned(st *stage) {
	st.grow("p", "", 100)
	st.grow("x", "p", 500)
	st.grow("y", "x", 500)
	for site := range st.nodes {
		if a := st.of([]string{"x", "y"}[site%2], site, 20, 0); !st.until(second, a.ok) {
			st.wrong("%v", a)
		}
	}
	st.split(4)
	st.detect()
	st.lacks(st.of("p", 0, 1, 2*second), "p")
	st.decide(&op{kind: remove, entity: "x", subtree: true})
	st.run(forgetDrought)
	began := st.now
	if a := st.of("p", 0, 80, 20*second); !st.until(25*second, a.ok) {
		st.wrong("%v", a)
	}
	st.millis("granted after", st.now-began)
	if out := st.nodes[4].drained.Books["p"].Net; out != 20 {
		st.wrong("%d tokens of the parent are out at the site that is cut off", out)
	}
	st.mend()
	st.run(forgetDrought)
	if a := st.of("p", 2, 20, 20*second); !st.until(25*second, a.ok) || st.outOf("p") != 100 {
		st.wrong("%d tokens of the parent are out: %v", st.outOf("p"), a)
	}
	st.finish(0)
}

func playMovesMissed(st *stage) {
	st.grow("p", "", 500)
	st.grow("q", "", 500)
	st.grow("x", "p", 500)
	st.grow("y", "x", 500)
	st.grow("z", "", 500)
	for i, name := range []string{"x", "y", "p", "z"} {
		if a := st.of(name, 4, core.Tokens(1)<<i, 0); !st.until(second, a.ok) {
			st.wrong("%v", a)
		}
	}
	gone := st.nodes[4]
	gone.crash()
	st.detect()
	had := gone.durable.Catalogue.Numbered
	st.decide(&op{kind: move, entity: "y", parent: ""})
	st.decide(&op{kind: move, entity: "x", parent: "q"})
	st.decide(&op{kind: remove, entity: "z"})
	st.decide(&op{kind: create, entity: "z", parent: "x", limit: 500})
	var list []*asked
	for i := range mostChanges {
		to := []string{"p", "q", "x", ""}[i%4]
		list = append(list, st.ask(&op{kind: move, entity: "y", parent: to, wait: 60 * second, site: 0}))
	}
	if !st.until(90*second, func() bool { return !slices.ContainsFunc(list, func(a *asked) bool { return !a.ok() }) }) {
		st.wrong("not all moves are decided")
	}
	// Results are kept by time.
	st.run(2*retention + 10*second)
	st.decide(&op{kind: move, entity: "y", parent: ""})
	if oldest := st.nodes[0].durable.Changes.List[0].Number; oldest <= had+1 {
		st.wrong("the change after number %d is remembered, the oldest is %d", had, oldest)
	}
	st.told("changes missed", int64(st.nodes[0].durable.Catalogue.Numbered-had))
	gone.boot()
	st.mend()
	began := st.now
	if !st.until(catchesUp, func() bool { return st.knows(4, 0) }) {
		st.wrong("%s has not caught up", gone.id)
	}
	st.millis("caught up after", st.now-began)
	st.run(2 * second)
	for name, out := range map[string]core.Tokens{"p": 4, "q": 1, "x": 1, "y": 2, "z": 0} {
		if got := gone.drained.Books[name].Net; got != out {
			st.wrong("%d tokens of %q are out, want %d", got, name, out)
		}
	}
	st.finish(0)
}

func playRetrySeveral(st *stage) {
	st.grow("p", "", 200)
	st.grow("q", "", 200)
	st.grow("x", "p", 100)
	st.grow("y", "p", 100)
	parts := []input.Part{{Entity: "x", Tokens: 5}, {Entity: "y", Tokens: 3}, {Entity: stageEntity, Tokens: 10}}
	a := st.request(&op{kind: acquireAll, parts: parts, tokens: 18})
	st.send(a, 0, first, true)
	if !st.until(second, func() bool { return st.stateAt(a, 0) == stored.Ran }) {
		st.wrong("%v has not run", a.op)
	}
	if st.chance(500) {
		st.nodes[0].crash()
		st.detect()
	} else {
		st.split(0)
		st.detect()
	}
	st.send(a, 1, next, false, 0)
	st.answered(a)
	st.decide(&op{kind: move, entity: "x", parent: "q"})
	st.mend()
	st.becomes(a, 0, stored.Undone)
	st.run(5 * second)
	for name, out := range map[string]core.Tokens{"p": 3, "q": 5, "x": 5, "y": 3} {
		if got := st.outOf(name); got != out {
			st.wrong("%d tokens of %q are out, want %d", got, name, out)
		}
	}
	st.finish(10)
}
