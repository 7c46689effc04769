package failuretest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/etcd"
	"github.com/samya-db/samya/site/sitetest"
)

// TestNodes has the nodes of a site with its log in etcd fail under load: the active node
// is killed at its calls to etcd, paused and cut off from etcd, and hands the site over;
// etcd's leader is killed. No call of the Go client fails, callers never hold more than the
// limit, the books are the callers' in the end, and no number of a commit is used twice.
func TestNodes(t *testing.T) {
	beside(t)
	seed := seedOf(t)
	s := startNodes(t, 3, etcd.Config{}, "--etcd-keep-history") // the watch needs the history
	f := &nodeFaults{nodeSite: s, rng: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	c := dial(t, s.active().Process)
	create(t, nodeLimit, c)
	f.load = s.startLoad(seed)
	pause(t, pick(time.Second, 3*time.Second))
	f.all()
	s.alive()
	last := s.active()
	f.load.judge(t, dial(t, last.Process))
	commits, terms := s.watch.judge()
	f.tell(seed, commits, terms)
}

// nodeFaults makes the nodes of a site fail, and takes the time until the site answers.
type nodeFaults struct {
	*nodeSite
	rng    *rand.Rand
	load   *nodeLoad
	counts map[string]int

	// kills, pauses, cuts, lasting, elections and handOvers are how long no answer came.
	kills, pauses, cuts, lasting, elections, handOvers, twice []time.Duration
	// terms is how long after a kill another node's term began.
	terms []time.Duration
}

// all makes the faults of the test's form, in random order.
func (f *nodeFaults) all() {
	f.t.Helper()
	var deck []func()
	chosen := chosenFaults(f.t)
	add := func(name string, n int, fault func()) {
		if chosen != nil {
			n = chosen[name]
			delete(chosen, name)
		}
		for range n {
			deck = append(deck, fault)
		}
	}
	add("kill", pick(5, 290), f.killActive)
	add("kill-twice", pick(1, 15), f.killTwice)
	add("kill-etcd", pick(1, 50), f.killEtcd)
	add("pause", pick(1, 20), f.pauseActive)
	add("cut", pick(1, 10), f.cutActive)
	add("cut-lastingly", pick(1, 10), f.cutActiveLastingly)
	add("lose-answer", pick(2, 50), f.loseAnswer)
	add("hand-over", pick(3, 60), f.handOverActive)
	if len(chosen) > 0 {
		f.t.Fatalf("%s: there are no faults %v", faultsEnv, slices.Sorted(maps.Keys(chosen)))
	}
	f.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	began, most := time.Now(), pick(40*time.Second, nodesTime(f.t))
	if chosenFaults(f.t) != nil {
		most = nodesTime(f.t)
	}
	for i, fault := range deck {
		if f.t.Failed() || time.Since(began) > most {
			f.t.Logf("%d of %d faults were made", i, len(deck))
			break
		}
		fault()
		pause(f.t, between(f.rng, 50*time.Millisecond, 300*time.Millisecond))
	}
}

// faultsEnv chooses the faults of nodes, and how many of each, in place of the form's: for
// example "pause=6,hand-over=20".
const faultsEnv = "SAMYA_TEST_FAULTS"

// chosenFaults returns the faults that faultsEnv chooses, by name; nil if it is not set.
func chosenFaults(t *testing.T) map[string]int {
	t.Helper()
	text := os.Getenv(faultsEnv)
	if text == "" {
		return nil
	}
	chosen := map[string]int{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			t.Fatalf("%s: %q is not a name, '=' and a number", faultsEnv, part)
		}
		chosen[name] = n
	}
	return chosen
}

// nodesTime bounds the faults of the long form, well within the time of the tests.
func nodesTime(t *testing.T) time.Duration {
	t.Helper()
	end, ok := t.Deadline()
	if !ok {
		return 30 * time.Minute
	}
	return time.Until(end) - 2*time.Minute
}

// answer waits for the first answer to a call that began after a time, and returns how
// long it took.
func (f *nodeFaults) answer(after time.Time) time.Duration {
	f.t.Helper()
	select {
	case at := <-f.load.first(after):
		return at.Sub(after)
	case <-time.After(patience):
		f.t.Errorf("no answer for %s", patience)
		return patience
	}
}

// killActive kills the active node at a call to etcd.
func (f *nodeFaults) killActive() {
	f.t.Helper()
	node := f.active()
	hit, ok := f.strike(node, []manner{killBefore, killAfter, killLost}[f.rng.IntN(3)])
	if !ok {
		return
	}
	f.kills = append(f.kills, f.answer(hit.at))
	f.terms = append(f.terms, f.watch.begun(hit.at).Sub(hit.at))
	if f.active() == node {
		f.t.Errorf("%s was killed and is active", node.Name)
	}
	f.restart()
}

// strike strikes at the active node. Half of the strikes are at any call, half at a rare
// one.
func (f *nodeFaults) strike(node *siteNode, how manner) (struck, bool) {
	f.t.Helper()
	s := &strike{manner: how, left: 1 + f.rng.IntN(60), kill: func() { f.do(node.Kill()) }}
	if f.rng.IntN(2) == 0 {
		rare := []etcdCall{etcdBeat, etcdTell, etcdTrim, etcdRead}
		s.kind, s.left = rare[f.rng.IntN(len(rare))], 1
	}
	node.proxy.arm(s)
	ctx, cancel := context.WithTimeout(f.t.Context(), 4*time.Second)
	defer cancel()
	hit, ok := node.proxy.await(ctx, s)
	if !ok {
		f.counts["missed"]++
		return hit, false
	}
	f.counts["at "+string(hit.kind)]++
	f.counts[string(how)]++
	return hit, true
}

// killTwice kills the active node, and then the node that takes over, at its first calls.
func (f *nodeFaults) killTwice() {
	f.t.Helper()
	node := f.active()
	var plans []*strike
	others := f.others(node)
	how, kind := []manner{killBefore, killAfter, killLost}[f.rng.IntN(3)], etcdLead
	left := 1
	if f.rng.IntN(2) == 0 {
		// Within the first commits of its term.
		kind, left = etcdCommit, 1+f.rng.IntN(3)
	}
	for _, n := range others {
		s := &strike{manner: how, kind: kind, left: left}
		s.kill = func() {
			for i, other := range others {
				if other != n {
					other.proxy.drop(plans[i])
				}
			}
			f.do(n.Kill())
		}
		plans = append(plans, s)
	}
	for i, n := range others {
		n.proxy.arm(plans[i])
	}
	began := time.Now()
	f.do(node.Kill())
	f.twice = append(f.twice, f.answer(began))
	hit := 0
	for i, n := range others {
		n.proxy.drop(plans[i])
		if n.PID() == 0 {
			hit++
		}
	}
	f.counts["killed in a take-over"] += hit
	f.counts["kills outright"]++
	f.restart()
}

// loseAnswer loses an answer of etcd. The node lives, and has to find out.
func (f *nodeFaults) loseAnswer() {
	f.t.Helper()
	node := f.active()
	if hit, ok := f.strike(node, cutLost); ok {
		f.answer(hit.at)
	}
}

// killEtcd kills etcd's leader, and starts it again.
func (f *nodeFaults) killEtcd() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	m, err := f.etcd.Leader(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	f.do(m.Kill())
	f.elections = append(f.elections, f.answer(time.Now()))
	f.do(m.Start())
	if _, err := f.etcd.Client().Get(ctx, "health"); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.etcd.Client().Status(ctx, m.Endpoint); err != nil {
		f.t.Fatal(err)
	}
}

// pauseActive pauses the active node until another has taken its place, and wakes it up in
// the midst of its calls.
func (f *nodeFaults) pauseActive() {
	f.t.Helper()
	node := f.active()
	began := time.Now()
	f.do(node.Signal(syscall.SIGSTOP))
	f.pauses = append(f.pauses, f.replaced(node, began))
	f.do(node.Signal(syscall.SIGCONT))
	f.follows(node)
}

// cutActive cuts the active node off from etcd until another has taken its place. What it
// has sent meanwhile may arrive late.
func (f *nodeFaults) cutActive() {
	f.t.Helper()
	node := f.active()
	began := time.Now()
	node.proxy.cut()
	sitetest.Eventually(f.t, "another node takes over", func() error {
		if f.watch.begun(began).IsZero() {
			return errNoActive
		}
		return nil
	})
	pause(f.t, between(f.rng, time.Millisecond, time.Second))
	node.proxy.heal(f.rng.IntN(2) == 0)
	f.cuts = append(f.cuts, f.replaced(node, began))
	f.follows(node)
}

// cutActiveLastingly cuts the active node off from etcd until another answers. The node that
// is cut off never learns of the other meanwhile, and has calls under way.
func (f *nodeFaults) cutActiveLastingly() {
	f.t.Helper()
	node := f.active()
	began := time.Now()
	node.proxy.cut()
	f.lasting = append(f.lasting, f.replaced(node, began))
	node.proxy.heal(f.rng.IntN(2) == 0)
	f.follows(node)
}

// replaced waits until another node answers.
func (f *nodeFaults) replaced(node *siteNode, began time.Time) time.Duration {
	f.t.Helper()
	took := f.answer(began)
	if f.active() == node {
		f.t.Errorf("%s was away and is active", node.Name)
	}
	pause(f.t, between(f.rng, time.Millisecond, time.Second))
	return took
}

// follows waits until a node that was away follows.
func (f *nodeFaults) follows(node *siteNode) {
	f.t.Helper()
	f.serves(node)
	f.alive()
	if f.active() == node {
		f.t.Errorf("%s came back and is active", node.Name)
	}
}

// handOverActive has the active node hand the site over.
func (f *nodeFaults) handOverActive() {
	f.t.Helper()
	node := f.active()
	began := time.Now()
	answered, err := f.handOver(node)
	if err != nil {
		// The others may not follow closely yet, after a fault.
		f.counts["hand-overs refused"]++
		return
	}
	f.handOvers = append(f.handOvers, answered.Sub(began)+f.answer(answered))
	f.follows(node)
}

// tell prints the figures, and holds them against their bounds.
func (f *nodeFaults) tell(seed uint64, commits uint64, terms int) {
	f.t.Helper()
	l := f.load
	// The short form runs beside other tests, and only prints its times.
	if p99 := quantile(f.kills, .99); pick(false, p99 > 3*time.Second) {
		f.t.Errorf("after kills of the active node the first answer took %s", p99)
	}
	// A call at a node that is away ends long before its own 15 s.
	for what, all := range map[string][]time.Duration{"pauses": f.pauses, "lasting partitions": f.lasting} {
		if longest := quantile(all, 1); pick(false, longest > 5*time.Second) {
			f.t.Errorf("after %s the first answer took %s", what, longest)
		}
	}
	if median := quantile(f.handOvers, .5); pick(false, median > 200*time.Millisecond) {
		f.t.Errorf("hand-overs took %s", median)
	}
	report(f.t, figures{
		{"seed", seed},
		{"requests", l.counts["executed"] + l.counts["out of tokens"]},
		{"a second", int(float64(l.counts["executed"]+l.counts["out of tokens"]) / time.Since(l.began).Seconds())},
		{"resumed", l.counts["resumed"]},
		{"faults", l.counts["faults"]},
		{"commits", commits},
		{"terms", terms},
		{"most out", fmt.Sprintf("%d of %d", l.ledger.MaxAcquired(entity).Tokens, nodeLimit)},
		{"kills", len(f.kills)},
		{"kills in a take-over", f.counts["killed in a take-over"]},
		{"kills of etcd's leader", len(f.elections)},
		{"pauses", len(f.pauses)},
		{"partitions", len(f.cuts) + len(f.lasting)},
		{"hand-overs", len(f.handOvers)},
	})
	for _, of := range []struct {
		what string
		all  []time.Duration
	}{
		{"kill of the active node to the next term", f.terms},
		{"kill of the active node to the first answer", f.kills},
		{"kill of two nodes to the first answer", f.twice},
		{"kill of etcd's leader to the first answer", f.elections},
		{"pause to the first answer", f.pauses},
		{"partition to the first answer", f.cuts},
		{"lasting partition to the first answer", f.lasting},
		{"hand-over to the first answer", f.handOvers},
	} {
		f.t.Logf("%-46s %4d: median %6s, p99 %6s, longest %6s", of.what, len(of.all),
			millis(quantile(of.all, .5)), millis(quantile(of.all, .99)), millis(quantile(of.all, 1)))
	}
	f.t.Logf("strikes: %v; the longest call %s", f.counts, millis(l.longest))
}

// quantile returns the value that the part q of the values does not exceed; 0 for none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func millis(d time.Duration) string { return d.Round(time.Millisecond).String() }
