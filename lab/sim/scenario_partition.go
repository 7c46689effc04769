package sim

import (
	"github.com/samya-db/samya/site/core/answer"
)

// partitionScenarios say which parts of a cluster redistribute.
func partitionScenarios() []Scenario {
	return []Scenario{
		{
			Name: "halves", About: "five sites are cut into three and two, and a site of each side runs short",
			Seeds: 20, play: playHalves,
			expected: map[string]string{
				"majority": "the three redistribute; the two never do, and serve what they kept",
				"star":     "both sides redistribute",
				"auto":     "the three redistribute by a majority, the two by their members",
			},
		},
		{
			Name: "pair", About: "three sites of five are down, and one of the two left runs short",
			Seeds: 20, play: playPair,
			expected: map[string]string{
				"majority": "no redistribution; what the two kept is served",
				"star":     "the two redistribute",
				"auto":     "the two redistribute, by their members",
			},
		},
		{
			Name: "change-without-majority", About: "a limit is changed among two sites of five",
			Seeds: 20, play: playChange,
			expected: map[string]string{
				"majority": "the change is answered by its time, 5,000 ms, plus a Window, and not done",
				"star":     "the same: a limit is always changed by a majority",
				"auto":     "the same: a limit is always changed by a majority",
			},
		},
	}
}

// short is how many tokens a site with its first share is asked for when it has to look
// for more.
const short = stageShare + stageShare/2

// playHalves cuts the sites into three and two. Whether a detector tells them so
// is left to the seed.
func playHalves(st *stage) {
	order := st.r.Perm(5)
	three, two := order[:3], order[3:]
	st.split(two...)
	if st.chance(500) {
		st.run(second)
		st.detect()
	}
	inThree := st.acquire(three[0], short, 20*second)
	inTwo := st.acquire(two[0], short, 20*second)
	st.run(30 * second)
	byMajority, byMembers := st.instances(three[0])
	st.told("in the three: by a majority", byMajority)
	st.told("by members", byMembers)
	if !inThree.ok() || st.mode == "star" && byMembers == 0 || st.mode != "star" && (byMajority == 0 || byMembers > 0) {
		st.wrong("in the three, %d and %d redistributions; %v", byMajority, byMembers, inThree)
	}
	st.inTwo(two, inTwo)
	st.mend()
	st.allAcquired()
}

// playPair leaves two sites of five.
func playPair(st *stage) {
	order := st.r.Perm(5)
	two := order[3:]
	for _, i := range order[:3] {
		st.nodes[i].crash()
	}
	if st.chance(500) {
		st.run(second)
		st.detect()
	}
	a := st.acquire(two[0], short, 20*second)
	st.run(30 * second)
	st.inTwo(two, a)
	st.mend()
	st.allAcquired()
}

// inTwo checks the outcome of a request for more than its site has, in two sites without
// a majority. It also checks that the two serve the tokens that they kept.
func (st *stage) inTwo(two []int, a *asked) {
	byMajority, byMembers := st.instances(two[0])
	st.told("in the two: by majority", byMajority)
	st.told("by their members", byMembers)
	st.millis("the request there took", a.ended-a.began)
	switch {
	case byMajority != 0:
		st.wrong("%d majority instances were applied in the two", byMajority)
	case st.mode != "majority":
		if byMembers == 0 || !a.ok() {
			st.wrong("in the two, %d star instances; %v", byMembers, a)
		}
		return
	case byMembers != 0:
		st.wrong("in the two, %d star instances were applied under the mode majority", byMembers)
	case a.answer == nil || a.answer.Code != answer.OutOfTokens:
		st.wrong("in the two, %v", a)
	}
	for _, i := range two {
		if kept := st.acquire(i, stageShare/2, 0); !st.until(second, kept.ok) {
			st.wrong("of what it kept, %v", kept)
		}
	}
}

// playChange changes a limit where no majority is.
func playChange(st *stage) {
	two := st.r.Perm(5)[:2]
	st.split(two...)
	if st.chance(500) {
		st.detect()
	}
	const wait = 5 * second
	a := st.ask(&op{kind: setLimit, entity: stageEntity, limit: stageLimit + 100, wait: wait, site: two[0]})
	st.run(20 * second)
	if a.answer == nil || a.answer.Code != answer.NoQuorum || a.ended-a.began > wait+second {
		st.wrong("%v", a)
	}
	st.millis("answered NoQuorum after", a.ended-a.began)
	st.mend()
	st.run(10 * second)
	for _, n := range st.nodes {
		if e := n.drained.Entities[stageEntity]; e.Limit != stageLimit {
			st.wrong("%s has the limit %d, which was answered as not done", n.id, e.Limit)
		}
	}
	st.allAcquired()
}
