package replica_test

import (
	"testing"

	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

// TestSigns: a node reads who is active, and the last sign of life, whatever other keys
// stand beside these.
func TestSigns(t *testing.T) {
	store := replicatest.New()
	kv := store.At(func(*replica.Txn) replicatest.Fate { return replicatest.Answered })
	a, b := newNode("a", kv, 1), newNode("b", kv, 1)
	for _, n := range []*node{a, b} {
		if err := n.open(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = n.log.Close() }()
	}
	sees := func(when, leader, word string) (term, rev int64) {
		t.Helper()
		who, beat, err := b.log.Signs()
		if err != nil || who.Node != leader || string(beat.Value) != word || (beat.Rev == 0) != (word == "") {
			t.Errorf("%s: %+v, %+v, %v", when, who, beat, err)
		}
		return who.Term, beat.Rev
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := kv.Do(&replica.Txn{Then: []replica.Change{{Key: keys.Prefix() + key, Value: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	put("back", "x")
	put("beatific", "y") // of a later build
	put("leading", "z")
	sees("at first", "", "")
	if err := a.lead(); err != nil {
		t.Fatal(err)
	}
	if term, _ := sees("after a take-over", "a", ""); term != a.log.Term() {
		t.Errorf("term %d, want %d", term, a.log.Term())
	}
	if err := a.log.Beat([]byte("one")); err != nil {
		t.Fatal(err)
	}
	_, first := sees("after a sign", "a", "one")
	if err := a.log.Beat([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if _, second := sees("after another", "a", "two"); second <= first {
		t.Errorf("the second sign has revision %d, the first %d", second, first)
	}
}
