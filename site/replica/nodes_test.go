package replica_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

var (
	nodesSeeds = flag.Uint64("nodes.seeds", 300, "how many seeds TestNodes runs")
	nodesFirst = flag.Uint64("nodes.first", 1, "the first seed of TestNodes")
)

// errDisk is the error of a disk that fails.
var errDisk = syscall.EIO

// wanted are the events that many runs have to show.
var wanted = strings.Fields(`commits batches parted leads lost fenced late behind copies burns trims cuts kills givenUp
	diskErrors confirms tells nested restored refused grown`)

// world is a run of nodes over a store.
type world struct {
	seed     uint64
	r        *rand.Rand
	store    *replicatest.Store
	model    *model
	machines []*machine
	origin   replica.Origin
	// partBytes and chunk are bounds of the log and of its base.
	partBytes, chunk int
	// weather is the fate of calls at present. calm ends all faults.
	weather weather
	calm    bool
	// depth is how many calls are under way within each other.
	depth int
	// clock counts what is told, runs the terms asked for, values the commits made.
	clock, runs, values int64
	trace               strings.Builder
	// seen counts the features of the run.
	seen map[string]int
	// copy is an earlier copy of the store, with the first and last commit in it.
	copy                replicatest.Copy
	copyFirst, copyLast journal.Number
}

// weather is the fate of calls for a while, in thousandths.
type weather struct{ unsent, unanswered, late, refused int }

func (w *world) chance(thousandths int) bool { return w.r.IntN(1000) < thousandths }

func (w *world) hit(what string) { w.seen[what]++ }

func (w *world) note(format string, args ...any) {
	_, _ = fmt.Fprintf(&w.trace, format+"\n", args...) // a builder takes all
}

// newWeather draws the fate of calls.
func (w *world) newWeather() {
	switch w.r.IntN(8) {
	case 0, 1, 2:
		w.weather = weather{}
	case 3:
		w.weather = weather{unsent: 1000}
	case 4:
		w.weather = weather{refused: 700}
	default:
		w.weather = weather{unsent: w.r.IntN(200), unanswered: w.r.IntN(300), late: w.r.IntN(300), refused: w.r.IntN(50)}
	}
}

// fate is the fate of a machine's call. Other machines may act just before.
func (w *world) fate(t *replica.Txn) replicatest.Fate {
	if w.calm {
		return replicatest.Answered
	}
	w.between()
	n := w.r.IntN(1000)
	for _, f := range []struct {
		fate replicatest.Fate
		odds int
	}{{replicatest.Unsent, w.weather.unsent}, {replicatest.Unanswered, w.weather.unanswered}, {replicatest.Late, w.weather.late}, {replicatest.Refused, w.weather.refused}} {
		if n -= f.odds; n < 0 {
			if f.fate == replicatest.Late && t != nil {
				w.hit("late")
			}
			if f.fate == replicatest.Refused {
				w.hit("refused")
			}
			return f.fate
		}
	}
	return replicatest.Answered
}

// between has others act in the middle of a machine's call.
func (w *world) between() {
	if w.calm || w.depth > 2 || !w.chance(150) {
		return
	}
	w.depth++
	w.hit("nested")
	for range 1 + w.r.IntN(4) {
		w.step()
	}
	w.depth--
}

// newWorld makes the nodes of a seed, and in some the data that the site had before.
func newWorld(seed uint64) (*world, error) {
	w := &world{seed: seed, r: rand.New(rand.NewPCG(seed, 0x0de5)), store: replicatest.New(), seen: make(map[string]int)}
	w.partBytes, w.chunk = 200<<w.r.IntN(4), 100<<w.r.IntN(6)
	w.origin = replica.Origin{Cluster: "c", Site: "us", Incarnation: owner}
	w.model = newModel(w)
	w.store.Took = w.model.took
	for i := range 1 + w.r.IntN(3) {
		w.machines = append(w.machines, w.newMachine(i))
	}
	if !w.chance(250) {
		return w, nil
	}
	// The site ran on the local log of the first node, and goes over to a replicated log.
	m, want := w.machines[0], journaltest.NewBase()
	local, err := m.openLocal()
	if err != nil {
		return nil, err
	}
	var b journal.Batch
	for range 1 + w.r.IntN(5) {
		journaltest.Commit(w.r, &b, want)
		if err := local.Commit(&b); err != nil {
			return nil, err
		}
	}
	w.origin.After = local.Stats().Number
	w.model.began(w.origin.After, want)
	return w, local.Close()
}

// make draws a commit.
func (w *world) make(m *machine, b *journal.Batch) *made {
	c := &made{by: m}
	b.Reset()
	add := func(op journal.Op) {
		c.ops = append(c.ops, op)
		switch op.Kind {
		case journal.Put:
			b.Put(op.Bucket, op.Key, op.Value)
		case journal.Delete:
			b.Delete(op.Bucket, op.Key)
		case journal.DeleteBelow:
			b.DeleteBelow(op.Bucket, op.Key)
		}
	}
	w.values++
	add(journal.Op{Kind: journal.Put, Bucket: 4, Key: []byte("made"), Value: journaltest.Key(uint64(w.values))})
	for range w.r.IntN(5) {
		op := journal.Op{Kind: journal.Put, Bucket: journal.Bucket(1 + w.r.IntN(3)), Key: journaltest.Key(w.r.Uint64N(30))}
		switch w.r.IntN(6) {
		case 0:
			op.Kind = journal.Delete
		case 1:
			op.Kind, op.Key = journal.DeleteBelow, journaltest.Key(w.r.Uint64N(8))
		default:
			op.Value = bytes.Repeat([]byte{byte(w.r.Uint32())}, w.r.IntN(300))
		}
		add(op)
	}
	w.model.made[string(b.Payload())] = c
	return c
}

// run runs a seed to its end.
func (w *world) run() error {
	steps := 150 + w.r.IntN(250)
	for i := 0; i < steps && w.model.err == nil; i++ {
		if i%40 == 0 {
			w.newWeather()
		}
		w.step()
	}
	if w.model.err == nil && w.copy != nil {
		w.restore()
	}
	if w.model.err == nil {
		w.rest()
	}
	return w.model.err
}

// rest ends all faults: then some node can lead, all catch up, and all have the same.
func (w *world) rest() {
	w.calm = true
	for w.store.Deliver() {
	}
	var all []*machine
	for _, m := range w.machines {
		m.end(false)
		if !m.out {
			all = append(all, m)
		}
	}
	// A node that lacks trimmed commits copies, so all are there in the second round at the
	// latest, or in the third if the node to copy from comes later.
	for range 4 {
		for _, m := range all {
			w.act(m, m.catchUp)
		}
	}
	if !w.complete(all) {
		return
	}
	var leader *machine
	for _, m := range all {
		if leader == nil && m.log != nil && m.phase == complete {
			w.act(m, func() error { return m.lead(true) })
			if m.leads() {
				leader = m
			}
		}
	}
	if leader == nil {
		w.model.fail("in the end no node can lead")
		return
	}
	w.act(leader, leader.commit)
	w.act(leader, leader.confirm)
	for _, m := range all {
		if m != leader {
			w.act(m, m.catchUp)
		}
		if w.model.err != nil || m.log == nil {
			w.model.fail("in the end %s is not up", m.name)
			return
		}
		if n := m.log.Last(); n != w.model.last() {
			w.model.fail("in the end %s has commit %d, the store %d", m.name, n, w.model.last())
			return
		}
		w.act(m, m.whole)
	}
	for _, m := range w.machines {
		if m.out {
			w.returns(m, leader)
		}
	}
}

// complete reports whether some of the machines has all that the store does not have. Only
// a restored store may be left without.
func (w *world) complete(all []*machine) bool {
	for _, m := range all {
		if m.log != nil && m.phase == complete {
			return true
		}
	}
	if w.seen["restored"] == 0 {
		w.model.fail("in the end no node has all commits")
	}
	return false
}

// act has a machine do something, and judges its error.
func (w *world) act(m *machine, what func() error) {
	if m.busy || w.model.err != nil {
		return
	}
	m.busy = true
	err := what()
	m.busy = false
	if err != nil {
		m.judge("act", err)
	}
}

func TestNodes(t *testing.T) {
	sum := make(map[string]int)
	for seed := *nodesFirst; seed < *nodesFirst+*nodesSeeds; seed++ {
		w, err := newWorld(seed)
		if err == nil {
			err = w.run()
		}
		if err != nil {
			if testing.Verbose() {
				t.Log(w.trace.String())
			}
			t.Fatalf("seed %d (alone, with its trace: -nodes.first %d -nodes.seeds 1 -v): %v", seed, seed, err)
		}
		for what, n := range w.seen {
			sum[what] += n
		}
	}
	t.Logf("%d seeds: %v", *nodesSeeds, sum)
	for _, what := range wanted {
		if sum[what] == 0 && *nodesSeeds >= 100 {
			t.Errorf("never happened: %s", what)
		}
	}
}
