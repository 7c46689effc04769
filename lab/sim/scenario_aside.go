package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

// moment is when in an instance something fails.
type moment uint8

const (
	// promised: the first offer is set aside, and the leader has not heard of it.
	promised moment = iota
	// proposed: the value has left to some sites, chosen by the seed.
	proposed
	// proposedToAll: the value has left to all that are in it.
	proposedToAll
)

// loss is a failure in an instance.
type loss struct {
	at moment
	// leader and cohorts say whether the leader fails, and how many others fail, of the
	// members of the value if there is a value.
	leader  bool
	cohorts int
	// crash ends them; else they are cut off.
	crash bool
	// alive is how many sites there are at the time; 0 for all.
	alive int
}

// lossScenario is a failure within an instance, with how long the offers of the remaining
// sites stay set aside, by mode. That is at most so many milliseconds, none at all beyond
// the instance, or until the failed sites are back.
type lossScenario struct {
	name, about          string
	loss                 loss
	majority, star, auto blocks
}

// blocks is how long the offers of the remaining sites stay set aside, in milliseconds;
// untilMended, or 0 where the mode says nothing.
type blocks int64

const untilMended blocks = -1

// Bounds on how long offers stay set aside, in milliseconds, by the default
// time-outs of core.Config: Window 450, Patience 1500, Backoff 50. A way of a
// message and its sync takes up to 100 of them here.
const (
	// anInstance is an instance without failure, from the value on.
	anInstance blocks = 400
	// aLead is an instance led by a site that waits for a site that does not answer.
	aLead = 450 + 600
	// oneTurn is Patience and an instance led by another site, twoTurns with a
	// question to the leader that has no answer before.
	oneTurn  = 1500 + aLead
	twoTurns = 1500 + oneTurn
	// aVote is Patience and a vote against, asking is Patience and a question to
	// all members with its answers.
	aVote  = 1500 + 100
	asking = 1500 + 400
)

func asideScenarios() []Scenario {
	var list []Scenario
	for _, l := range []lossScenario{
		{
			name: "leader-crash-before-value", about: "the leader crashes when the others have set offers aside for it",
			loss: loss{at: promised, leader: true, crash: true}, majority: twoTurns, star: aVote, auto: twoTurns,
		},
		{
			name: "leader-cut-before-value", about: "the leader is cut off when the others have set offers aside for it",
			loss: loss{at: promised, leader: true}, majority: twoTurns, star: aVote, auto: twoTurns,
		},
		{
			name: "leader-crash-after-value", about: "the leader crashes when the value has left to some",
			loss: loss{at: proposed, leader: true, crash: true}, majority: oneTurn, star: asking, auto: oneTurn,
		},
		{
			name: "leader-cut-after-value", about: "the leader is cut off when the value has left to some",
			loss: loss{at: proposed, leader: true}, majority: oneTurn, star: asking, auto: oneTurn,
		},
		{
			name: "cohort-crash", about: "a site that is in the value crashes before it has voted",
			loss: loss{at: proposed, cohorts: 1, crash: true}, majority: anInstance, star: untilMended, auto: anInstance,
		},
		{
			name: "cohort-cut", about: "a site that is in the value is cut off before it has voted",
			loss: loss{at: proposed, cohorts: 1}, majority: anInstance, star: untilMended, auto: anInstance,
		},
		{
			name: "leader-and-cohort-crash", about: "the leader and one site that is in the value crash once the value has left to all",
			loss:     loss{at: proposedToAll, leader: true, cohorts: 1, crash: true},
			majority: oneTurn, star: untilMended, auto: oneTurn,
		},
		{
			name: "majority-lost-after-value", about: "the leader and two sites that are in the value crash once the value has left to all",
			loss:     loss{at: proposedToAll, leader: true, cohorts: 2, crash: true},
			majority: untilMended, star: untilMended, auto: untilMended,
		},
		{
			name: "pair-leader-crash-before-value", about: "of two sites that are left of five, the one that leads crashes before it has built a value",
			loss: loss{at: promised, leader: true, crash: true, alive: 2}, star: aVote, auto: aVote,
		},
		{
			name: "pair-leader-crash-after-value", about: "of two sites that are left of five, the one that leads crashes once the value has left",
			loss: loss{at: proposedToAll, leader: true, crash: true, alive: 2}, star: anInstance, auto: anInstance,
		},
		{
			name: "pair-cohort-crash", about: "of two sites that are left of five, the other one crashes before its vote",
			loss: loss{at: proposed, cohorts: 1, crash: true, alive: 2}, star: untilMended, auto: untilMended,
		},
		{
			name: "no-majority", about: "one of two sites that are left of five asks for offers, and finds no majority",
			loss: loss{at: promised, alive: 2}, majority: 450 + 100,
		},
	} {
		list = append(list, l.scenario())
	}
	return list
}

func (l *lossScenario) scenario() Scenario {
	sc := Scenario{Name: l.name, About: l.about, Seeds: 20, expected: make(map[string]string)}
	bounds := map[string]blocks{"majority": l.majority, "star": l.star, "auto": l.auto}
	for mode, most := range bounds {
		switch most {
		case 0:
		case untilMended:
			sc.expected[mode] = "offers of those left stay aside until what failed is back; then all come back"
		default:
			sc.expected[mode] = "offers of those left are back within " + millisText(most) + "; all are when what failed is back"
		}
	}
	sc.play = func(st *stage) { st.playLoss(&l.loss, bounds[st.mode]) }
	return sc
}

// lossLasts is how long the failure of a scenario lasts, at least. mends is the time for
// all offers to come back after the failure has ended.
const (
	lossLasts = 15 * second
	mends     = 12 * second
)

// playLoss has something fail within an instance, and measures how long the offers of the
// remaining sites stay set aside: the longest time that any site has some, from the
// failure on.
func (st *stage) playLoss(l *loss, most blocks) {
	order := st.r.Perm(5)
	alive := order
	if l.alive > 0 {
		alive = order[:l.alive]
		for _, i := range order[l.alive:] {
			st.nodes[i].crash()
		}
	}
	if st.mode == "star" || l.alive > 0 {
		// A leader of a star instance with enough tokens waits for nobody else: all have
		// to be asked for so many to be in the value.
		st.detect()
	}
	leader := alive[0]
	lost, failed := st.strike(l, leader, alive)
	// So much that all the others have to give.
	want := st.r.Int64N(20) + int64(stageShare)*int64(len(alive)) - 60
	st.acquire(leader, core.Tokens(want), 10*second)
	if !st.until(8*second, func() bool { return *failed }) {
		st.wrong("nothing failed: the instance did not get so far")
		return
	}
	left := slices.DeleteFunc(slices.Clone(alive), func(i int) bool { return slices.Contains(*lost, i) })
	st.told("slices set aside", int64(st.setAside(allSites)))
	blocked, ended := st.longest(left, lossLasts+st.r.Int64N(10*second))
	switch {
	case most == untilMended && ended:
		st.wrong("what was left came back before what failed did, after %d ms", blocked/millisecond)
	case most == untilMended:
	case !ended || blocked/millisecond > int64(most):
		st.wrong("offers stayed set aside for %d ms, at most %d are due", blocked/millisecond, most)
	}
	if ended {
		st.millis("set aside for", blocked)
	}
	st.mend()
	began := st.now
	if !st.until(mends, func() bool { return !st.holds(allSites) }) {
		st.wrong("%d ms after all was back, %d slices are set aside", mends/millisecond, st.setAside(allSites))
	}
	st.millis("all back after", st.now-began)
	st.allAcquired()
}

// strike makes the loss happen at its moment. It returns the lost sites, and whether the
// loss has happened, once it has.
func (st *stage) strike(l *loss, leader int, alive []int) (lost *[]int, failed *bool) {
	lost, failed = new([]int), new(bool)
	proposals, let := 0, 0
	strike := func(members []avantan.Contribution) {
		st.sending = nil
		*failed = true
		if l.leader {
			*lost = append(*lost, leader)
		}
		others := slices.DeleteFunc(slices.Clone(alive), func(i int) bool {
			in := slices.ContainsFunc(members, func(c avantan.Contribution) bool { return c.Site == st.names[i] })
			return i == leader || !in
		})
		st.r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		if len(others) < l.cohorts {
			st.wrong("the value has %d other sites", len(others))
			return
		}
		*lost = append(*lost, others[:l.cohorts]...)
		st.lose(*lost, l.crash)
	}
	st.sending = func(from *node, e *message.Envelope) {
		if e.Entity != stageEntity {
			return
		}
		value, promise := proposal(e)
		switch {
		case l.at == promised:
			if promise {
				strike(nil)
			}
		case value == nil:
		case !l.leader:
			// The vote of who fails is not cast.
			strike(value.Contributions)
		default:
			if let == 0 {
				let = len(alive) - 1
				if e.Star != nil {
					let = len(value.Contributions) - 1
				}
				if l.at == proposed {
					let = 1 + st.r.IntN(let)
				}
			}
			if proposals++; proposals == let {
				members := value.Contributions
				st.sending = func(*node, *message.Envelope) { strike(members) }
				if l.crash {
					// Between two effects of the leader: after this message.
					from.fuse = 1
					st.sending = nil
					st.after(0, func() { strike(members) })
				}
			}
		}
	}
	return lost, failed
}

// proposal returns the value that a message of a leader proposes, and reports
// whether it is an offer instead.
func proposal(e *message.Envelope) (v *avantan.Value, promise bool) {
	switch {
	case e.Star == nil && e.Message.Kind == avantan.Accept:
		return e.Message.Value, false
	case e.Star == nil:
		return nil, e.Message.Kind == avantan.ElectionOk
	case e.Star.Kind == star.Accept:
		return e.Star.Value, false
	default:
		return nil, e.Star.Kind == star.ElectionOk && e.Star.Contribution != nil
	}
}

// lose crashes sites, or cuts each off from all others.
func (st *stage) lose(sites []int, crash bool) {
	for _, i := range sites {
		if crash {
			st.nodes[i].crash()
			continue
		}
		for j := range st.cut {
			st.cut[i][j], st.cut[j][i] = i != j, i != j
		}
	}
}

// longest runs for a time. It returns the longest time that any of the sites had tokens
// set aside without a pause, and whether none has any in the end.
func (st *stage) longest(sites []int, d micros) (most micros, ended bool) {
	began := make(map[int]micros)
	for end := st.now + d; st.now < end && st.violation == nil; st.run(millisecond) {
		for _, i := range sites {
			if !st.holds([]int{i}) {
				delete(began, i)
				continue
			}
			if _, counted := began[i]; !counted {
				began[i] = st.now
			}
			most = max(most, st.now-began[i])
		}
	}
	return most, len(began) == 0
}
