package avantan

import (
	"fmt"
	"iter"
	"testing"
)

// TestSimulationOfRecoveries is TestSimulationOfViews with a majority that is lost for
// good at any time. It may have decided instances of which nobody has heard, and have
// granted their tokens. The survivors hear of the loss in turn.
func TestSimulationOfRecoveries(t *testing.T) {
	for _, size := range []int{2, 3, 4, 5, 7} {
		t.Run(fmt.Sprintf("sites=%d", size), func(t *testing.T) { simulateAll(t, size, simulateRecovery) })
	}
}

func simulateRecovery(size int, seed uint64) (instances int, err error) {
	s, r := newSim(size, seed, seed%2 == 0)
	s.limits = false
	if err := s.events(r.IntN(300 * size)); err != nil {
		return 0, err
	}
	s.lose()
	return s.all(r.IntN(300 * size))
}

// survivors yields the sites that are not lost.
func (c *cluster) survivors() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, n := range c.nodes {
			if !c.lost[n.id] && !yield(n) {
				return
			}
		}
	}
}

// lose has a majority of the present view lost for good, if that leaves a voter of each
// view that a survivor goes by. Instances applied and not stored at the others are stored or
// lost.
func (s *sim) lose() {
	lost := make(map[SiteID]bool)
	view := s.viewOf(Instance(len(s.value)) + 1)
	for _, i := range s.r.Perm(len(view))[:view.quorum()] {
		lost[view[i]] = true
	}
	for _, n := range s.nodes {
		if !view.Has(n.id) && s.chance(300) {
			lost[n.id] = true
		}
	}
	if len(lost) == len(s.nodes) {
		return
	}
	for _, n := range s.nodes {
		left := 0
		for _, v := range n.b.view {
			if !lost[v] {
				left++
			}
		}
		if !lost[n.id] && left == 0 {
			return
		}
	}
	for _, n := range s.nodes {
		switch {
		case lost[n.id] || s.chance(300):
			s.cluster.crash(n)
		default:
			s.syncAll(n)
		}
	}
	s.lost = lost
	for n := range s.survivors() {
		s.settled = max(s.settled, n.disk.Applied)
	}
	for t := range s.value {
		if t > s.settled {
			s.hide(t)
		}
	}
}

// recovers has a survivor know of the loss.
func (s *sim) recovers(n *node) {
	s.syncAll(n)
	n.recovers = true
	switch m, err := n.m.Recover(); {
	case err == nil:
		n.m = m
	case !s.dead():
		s.fail("%s: %w", n.id, err)
	}
}

// unlearn forgets instances that only the lost sites have decided, and that a survivor
// that crashes now had heard of.
func (c *cluster) unlearn(crashed *node) {
	if len(c.lost) == 0 {
		return
	}
	known := c.settled
	for n := range c.survivors() {
		known = max(known, n.disk.Applied)
		if n != crashed {
			known = max(known, n.m.State().Applied)
		}
	}
	for t := range c.value {
		if t > known && !c.recovered(t) {
			c.hide(t)
		}
	}
}

// hide has an instance decided in secret.
func (c *cluster) hide(t Instance) {
	c.secret[t] = c.value[t]
	delete(c.value, t)
}

// relearn notes the instances decided in secret of which a survivor has heard now.
func (c *cluster) relearn() {
	for n := range c.survivors() {
		for t, v := range c.secret {
			if t <= n.m.State().Applied && c.value[t] == nil {
				c.value[t] = v
			}
		}
	}
}

// dead reports whether all voters are lost: a decision to leave the survivors out of the
// view was under way.
func (c *cluster) dead() bool {
	for _, v := range c.viewOf(Instance(len(c.value)) + 1) {
		if !c.lost[v] {
			return false
		}
	}
	return true
}

// recovered reports whether the survivors have chosen a value of an instance.
func (c *cluster) recovered(t Instance) bool {
	for at, voters := range c.accepts {
		if at.t == t && at.b.epoch() > 0 && len(voters) >= c.quorum(at) {
			return true
		}
	}
	return false
}

// bounded checks what holds once sites are lost: the tokens that the lost sites may have
// granted and those that the survivors may grant are no more than the limit. A survivor
// has got its tokens of each instance that it was in.
func (c *cluster) bounded() error {
	sum := Tokens(0)
	for _, n := range c.nodes {
		if c.lost[n.id] {
			sum += n.diskB.left
			continue
		}
		sum += n.b.left
		for t, v := range c.value {
			if _, in := v.Of(n.id); in != n.b.got[t] && n.m.State().Applied >= t {
				return fmt.Errorf("%s: passed over instance %d, in R: %v, applied: %v", n.id, t, in, n.b.got[t])
			}
		}
	}
	if sum > c.total {
		return fmt.Errorf("%d tokens may be granted, the limit is %d", sum, c.total)
	}
	return nil
}

// survivor is b of five sites, which has pledged its tokens to c. The lost sites are c, d
// and e.
func survivor(t *testing.T) (*cluster, *node) {
	t.Helper()
	c := newCluster(map[SiteID]Tokens{"a": 10, "b": 10, "c": 10, "d": 10, "e": 10}, func(SiteID) Rand { return least{} })
	c.lost = map[SiteID]bool{"c": true, "d": true, "e": true}
	b := c.node("b")
	out := c.settle(b, Input{Receive: &Message{Kind: Election, From: "c", To: "b", Instance: 1, Ballot: Ballot{1, "c"}, Press: PressAll}})
	if len(out.Messages) != 1 || out.Messages[0].Contribution == nil || b.b.left != 0 {
		t.Fatalf("%+v", out)
	}
	return c, b
}

// told has a site know of the loss.
func (c *cluster) told(t *testing.T, n *node) {
	t.Helper()
	n.recovers = true
	var err error
	if n.m, err = n.m.Recover(); err != nil {
		t.Fatal(err)
	}
}

func election(number uint64) *Message {
	return &Message{Kind: Election, From: "a", To: "b", Instance: 1, Ballot: Ballot{number, "a"}, Press: PressAll}
}

const epoch3 = 3 << epochShift

// TestEpochsDoNotMix: a site takes no part in ballots of an epoch that it does not know,
// or knows to be over.
func TestEpochsDoNotMix(t *testing.T) {
	c, b := survivor(t)
	if out := c.settle(b, Input{Receive: election(epoch3 + 1)}); len(out.Messages) != 0 || out.Persist {
		t.Errorf("before it knows of the loss: %+v", out)
	}
	c.told(t, b)
	if out := c.settle(b, Input{Receive: election(7)}); len(out.Messages) != 0 || out.Persist {
		t.Errorf("a ballot of before: %+v", out)
	}
	out := c.settle(b, Input{Receive: election(epoch3 + 1)})
	if len(out.Messages) != 1 || out.Messages[0].Kind != ElectionOk || out.Messages[0].Contribution != nil {
		t.Errorf("an offer that a lost site may have used: %+v", out)
	}
}

// TestLostSitesAreNotHeard: a decision of a lost site, under way when the site was lost,
// is refused.
func TestLostSitesAreNotHeard(t *testing.T) {
	c, b := survivor(t)
	late := &Message{Kind: Decision, From: "c", To: "b", Instance: 1, Value: &Value{Policy: "even", Contributions: []Contribution{{Site: "c"}}}}
	c.told(t, b)
	if out := c.step(b, Input{Receive: late}); out.Err == nil || b.m.State().Applied != 0 {
		t.Errorf("%+v", out)
	}
}

// TestPledgesAreForfeit: a pledge that lost sites may have used is gone once the instance
// is settled without it, however the site hears of that. A debt is not.
func TestPledgesAreForfeit(t *testing.T) {
	value := &Value{Policy: "even", Contributions: []Contribution{{Site: "a"}}}
	for name, m := range map[string]*Message{
		"decision": {Kind: Decision, From: "a", To: "b", Instance: 1, Value: value},
		"snapshot": {Kind: CatchUp, From: "a", To: "b", Applied: 1, Snapshot: []byte(`{"Limit":50,"View":["a","b","c","d","e"]}`)},
	} {
		for _, left := range []Tokens{0, 10} {
			c, b := survivor(t)
			if left == 0 {
				c.told(t, b)
			}
			c.value[1] = value
			if out := c.step(b, Input{Receive: m}); out.Err != nil || b.m.State().Applied != 1 || b.b.left != left || len(b.b.offers) != 0 {
				t.Errorf("%s: %d left, want %d: %+v", name, b.b.left, left, out)
			}
		}
	}
}

// TestNobodyIsLeft: without a voter a sequence cannot go on.
func TestNobodyIsLeft(t *testing.T) {
	c := newCluster(map[SiteID]Tokens{"a": 10}, func(SiteID) Rand { return least{} })
	c.join(map[SiteID]Tokens{"b": 10}, func(SiteID) Rand { return least{} })
	c.lost = map[SiteID]bool{"a": true}
	b := c.node("b")
	b.recovers = true
	if _, err := b.m.Recover(); err == nil {
		t.Error("b goes on without a vote")
	}
}

// TestLearnersAreAsked: the leader builds no value before a survivor without a vote has
// told that it has not applied the instance.
func TestLearnersAreAsked(t *testing.T) {
	left := map[SiteID]Tokens{"b": 10, "c": 10, "d": 10}
	c := newCluster(left, func(SiteID) Rand { return least{} })
	c.join(map[SiteID]Tokens{"a": 0}, func(SiteID) Rand { return least{} })
	c.lost = map[SiteID]bool{"c": true, "d": true}
	b := c.node("b")
	c.told(t, b)
	out := c.settle(b, Input{Begin: &Proposal{}})
	if len(out.Messages) != 3 || len(out.Applied) != 0 {
		t.Fatalf("%+v", out)
	}
	ask := out.Messages[len(out.Messages)-1]
	a := c.node("a")
	if out = c.settle(a, Input{Receive: &ask}); len(out.Messages) != 0 {
		t.Fatalf("before it knows of the loss: %+v", out)
	}
	c.told(t, a)
	if out = c.settle(a, Input{Receive: &ask}); len(out.Messages) != 1 || out.Persist {
		t.Fatalf("%+v", out)
	}
	if out = c.settle(b, Input{Receive: &out.Messages[0]}); len(out.Applied) != 1 {
		t.Fatalf("%+v", out)
	}
}
