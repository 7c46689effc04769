package replica_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

const owner = 0xfeed

var keys = replica.KeysOf("c", "us")

// disk is a simulated disk as a directory of a log.
type disk struct{ *simdisk.Disk }

// Create implements journal.Dir.
func (d disk) Create(name string) (journal.File, error) { return d.Disk.Create(name) }

// Open implements journal.Dir.
func (d disk) Open(name string) (journal.File, error) { return d.Disk.Open(name) }

// node is a node of a site: its disk and base, and the log while it is open.
type node struct {
	name string
	kv   replica.KV
	disk *simdisk.Disk
	base *journaltest.Base
	log  *replica.Log
	runs uint64
	// spans are on the disk.
	spans keptSpans
}

// keptSpans keeps spans.
type keptSpans []replica.Span

// Load implements replica.Spans.
func (k *keptSpans) Load() ([]replica.Span, error) { return *k, nil }

// Save implements replica.Spans.
func (k *keptSpans) Save(spans []replica.Span) error { *k = spans; return nil }

func newNode(name string, kv replica.KV, seed uint64) *node {
	return &node{name: name, kv: kv, disk: simdisk.New(rand.New(rand.NewPCG(seed, uint64(len(name))))), base: journaltest.NewBase()}
}

// patience is how often a call is repeated in tests.
const patience = 100

func wait(attempt int, failure error) error {
	if attempt == patience {
		return fmt.Errorf("%d attempts: %w", attempt, failure)
	}
	return nil
}

// open opens the node's log, which follows.
func (n *node) open() error {
	origin, err := replica.Found(n.kv, keys, replica.Origin{Cluster: "c", Site: "us", Incarnation: owner}, wait)
	if err != nil {
		return err
	}
	local, err := journal.Open(disk{n.disk}, n.base, journal.Options{Owner: origin.Incarnation, ChunkBytes: 1000, MaxCommit: 1 << 20})
	if err != nil {
		return err
	}
	n.log, err = replica.New(local, replica.Options{
		KV: n.kv, Keys: keys, Node: n.name, Origin: origin, Wait: wait, PartBytes: 1000, Spans: &n.spans,
	})
	return err
}

// lead makes the node active in place of the present node.
func (n *node) lead() error {
	seen, err := n.log.Leader()
	if err != nil {
		return err
	}
	n.runs++
	won, err := n.log.Lead(seen, replica.Leader{Node: n.name, Run: n.runs})
	if err == nil && !won {
		err = errors.New("another node was faster")
	}
	return err
}

// TestSuite runs the tests of every log on the log of a node that is alone, and on the log of
// nodes that take over from each other at each start.
func TestSuite(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			journaltest.Suite(t, func(_ *testing.T, seed uint64) journaltest.Rig {
				store := replicatest.New()
				r := rand.New(rand.NewPCG(seed, 9))
				kv := store.At(func(*replica.Txn) replicatest.Fate { return replicatest.Fate(r.IntN(12) % 8 % 3) })
				var all []*node
				for i := range nodes {
					all = append(all, newNode(string(rune('a'+i)), kv, seed))
				}
				turn := 0
				return journaltest.Rig{
					Longest: 1000 * 1024,
					Open: func() (journal.Log, *journaltest.Base, error) {
						n := all[turn%nodes]
						turn++
						if err := n.open(); err != nil {
							return nil, nil, err
						}
						return n.log, n.base, n.lead()
					},
					Crash: func() { all[(turn+nodes-1)%nodes].disk.Cut() },
				}
			})
		})
	}
}
