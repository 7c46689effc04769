package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
)

// A site that is down misses so many instances of the entity, and so many of the
// catalogue. The storage of the others for it is measured after the first few and at the
// end.
const (
	missed   = 1000
	firstFew = 100
	// mostChanges is how many outcomes of changes of the catalogue a site remembers, so
	// that a repeated change is answered; for all clients, and whoever is down.
	mostChanges = 4096
	// mostBytes bounds the bytes that a site stores of the entity and of the catalogue's
	// sequence, as JSON, without the outcomes of changes.
	mostBytes = 4 << 10
	// mostDecisions bounds the decisions that a site retains for all others, in either
	// sequence: a single decision for each site. mostSlices bounds the retained star
	// instances.
	mostDecisions = 5
	mostSlices    = 4
	// catchesUp is how long a site that comes back may take until it knows all.
	catchesUp = 10 * second
)

func downScenario() Scenario {
	all := fmt.Sprintf("one more decision is due to it; the others store at most %d decisions a sequence, %d slices, %d outcomes and %d kB for it, "+
		"as after %d; back, it knows all within 10 s and has exactly what it is due", mostDecisions, mostSlices, mostChanges, mostBytes>>10, firstFew)
	return Scenario{
		Name:  "down-for-1000",
		About: "a site crashes before it learns of a decision that it is in, and misses 1,000 more of the entity and 1,000 of the catalogue",
		Seeds: 3, play: playDown,
		expected: map[string]string{"majority": all, "star": all, "auto": all},
	}
}

// footprint is a site's storage of the sequences.
type footprint struct{ decisions, slices, outcomes, bytes int }

// storage is the most that any of the sites stores.
func (st *stage) storage(sites []int) footprint {
	var most footprint
	for _, i := range sites {
		d := st.nodes[i].durable
		e := d.Entities[stageEntity]
		raw, err := json.Marshal(e)
		if err != nil {
			st.wrong("encoding a record: %v", err)
		}
		catalogue, err := json.Marshal(d.Catalogue)
		if err != nil {
			st.wrong("encoding a record: %v", err)
		}
		most.decisions = max(most.decisions, len(e.Protocol.Kept), len(d.Catalogue.Protocol.Kept))
		most.slices = max(most.slices, len(e.Star.Slices))
		most.outcomes = max(most.outcomes, len(d.Changes.List))
		most.bytes = max(most.bytes, len(raw)+len(catalogue))
	}
	return most
}

func (st *stage) storedAfter(instances string, sites []int) {
	most := st.storage(sites)
	st.told("after "+instances+": decisions", int64(most.decisions))
	st.told("slices after "+instances, int64(most.slices))
	st.told("outcomes after "+instances, int64(most.outcomes))
	st.told("bytes after "+instances, int64(most.bytes))
	if most.decisions > mostDecisions || most.slices > mostSlices || most.outcomes > mostChanges || most.bytes > mostBytes {
		st.wrong("after %s, a site stores %+v", instances, most)
	}
}

func playDown(st *stage) {
	order := st.r.Perm(5)
	down, others := order[0], order[1:]
	gone := st.nodes[down]
	// Its clients have taken all it had and ask for more. So the site asks for more in
	// the instance that ends without it.
	for range 3 * stageShare / 20 {
		st.acquire(down, 20, 0)
		st.run(300 * millisecond)
	}
	due := st.missesTheEnd(down, others[0])
	had := st.holdings(down)
	st.detect()
	before := st.decided()
	st.redistribute(others, func() int { return st.decided() - before }, firstFew)
	st.storedAfter(fmt.Sprint(firstFew), others)
	st.redistribute(others, func() int { return st.decided() - before }, missed)
	catalogue := func() int { return int(st.nodes[others[0]].drained.Catalogue.Protocol.Applied) }
	first := catalogue()
	st.changeCatalogue(others, func() bool { return catalogue()-first >= missed })
	st.run(10 * second)
	st.storedAfter(fmt.Sprintf("%d and %d", missed, missed), others)
	st.told("instances missed", int64(st.decided()-before))
	st.told("of the catalogue", int64(catalogue()-first))

	gone.boot()
	st.healed = true
	st.detect()
	began := st.now
	if !st.until(catchesUp, func() bool { return st.knows(down, others[0]) && !st.holds([]int{down}) }) {
		st.wrong("%s has not caught up", gone.id)
	}
	st.millis("caught up after", st.now-began)
	got := st.holdings(down) - had
	grant, offer := due()
	st.told("tokens that it had offered", int64(offer))
	st.told("granted to it meanwhile", int64(grant))
	if got != grant-offer || grant == 0 {
		st.wrong("%s is due %d tokens for %d, and has %d more than it had", gone.id, grant, offer, got)
	}
	st.allAcquired()
}

// decided is how many instances of the entity are decided.
func (st *stage) decided() int { return st.report.Instances + st.report.StarDecided }

func (st *stage) holdings(site int) core.Tokens {
	n := st.nodes[site]
	return n.has(stageEntity) + n.drained.Books[stageEntity].Net
}

// knows reports whether a site has applied the same instances as another site.
func (st *stage) knows(site, other int) bool {
	a, b := st.nodes[site].drained, st.nodes[other].drained
	return a.Catalogue.Protocol.Applied == b.Catalogue.Protocol.Applied &&
		a.Entities[stageEntity].Protocol.Applied == b.Entities[stageEntity].Protocol.Applied
}

// missesTheEnd crashes a site in an instance that counts on it and is decided all the
// same. Under the majority variant it crashes when the value is proposed, under the star
// variant once its own vote has left. due tells the site's grant by the decision, and its
// offer.
func (st *stage) missesTheEnd(down, leader int) (due func() (grant, offer core.Tokens)) {
	n := st.nodes[down]
	// Its offer is the first that the leader has, and so is in the value.
	st.latency[down][leader], st.latency[leader][down] = millisecond, millisecond
	q := st.observe.sequence(sequenceID{stageEntity, 1})
	at := n.drained.Entities[stageEntity].Protocol.Applied
	var id star.ID
	st.sending = func(from *node, e *message.Envelope) {
		switch {
		case e.Entity != stageEntity:
		case e.Star == nil && e.Message.Kind == avantan.Accept:
			if _, in := e.Message.Value.Of(n.id); in {
				n.crash()
				st.sending = nil
			}
		case e.Star != nil && e.Star.Kind == star.AcceptOk && from == n:
			id = e.Star.ID
			n.fuse = 1
			st.sending = nil
		}
	}
	const most = 2*stageShare + stageShare/2
	if a := st.acquire(leader, most, 20*second); !st.until(25*second, a.ok) || n.up {
		st.wrong("%s is up: %v; %v", n.id, n.up, a)
	}
	st.release(leader, most)
	st.run(5 * second)
	return func() (grant, offer core.Tokens) {
		if id != (star.ID{}) {
			x := q.starOf(id, 5)
			offer = x.pledges[down].Offered
			return offer + x.moves[down], offer
		}
		c, _ := q.chosen[at+1].Of(n.id)
		return c.Offered + q.holdings[q.settled][down] - q.holdings[at][down], c.Offered
	}
}

// redistribute has the sites run short in turn, and gives the tokens back at another
// site, until so many instances are decided.
func (st *stage) redistribute(sites []int, done func() int, count int) {
	for i := 0; done() < count && st.violation == nil; i++ {
		left := func(a int) core.Tokens { return st.nodes[a].drained.Books[stageEntity].Left }
		short := slices.MinFunc(sites, func(a, b int) int { return cmp.Compare(left(a), left(b)) })
		back, tokens := sites[i%len(sites)], max(0, left(short))+20
		a := st.acquire(short, tokens, 10*second)
		if !st.until(15*second, a.ok) {
			st.wrong("after %d instances, %v", done(), a)
			return
		}
		if a := st.release(back, tokens); !st.until(5*second, a.ok) {
			st.wrong("after %d instances, %v", done(), a)
			return
		}
	}
}

// changeCatalogue creates and deletes entities, several at a time, until it is
// done and none of them is left.
func (st *stage) changeCatalogue(sites []int, done func() bool) {
	const atOnce = 10
	kind := create
	for i := 0; (!done() || kind == remove) && st.violation == nil; i++ {
		var list []*asked
		for k := range atOnce {
			list = append(list, st.ask(&op{
				kind: kind, entity: fmt.Sprintf("x%d", k), limit: 10, wait: 5 * second, site: sites[i/2%len(sites)],
			}))
		}
		all := func() bool { return !slices.ContainsFunc(list, func(a *asked) bool { return !a.ok() }) }
		if !st.until(15*second, all) {
			st.wrong("a change of the catalogue: %v", list[0])
			return
		}
		kind = create + remove - kind
	}
}
