package replica_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

// commits has a node that leads commit values of a given size.
func commits(t *testing.T, n *node, count, size int) {
	t.Helper()
	var b journal.Batch
	for range count {
		b.Reset()
		b.Put(1, []byte("k"), bytes.Repeat([]byte{1}, size))
		if err := n.log.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
}

// trims reports whether a transaction trims the log.
func trims(txn *replica.Txn) bool {
	return txn != nil && slices.ContainsFunc(txn.Then, func(c replica.Change) bool { return c.To != "" })
}

// TestTrimBesideACopy has a node begin to copy just before the log is trimmed by what the
// nodes told earlier: nothing is trimmed, until the node has its copy.
func TestTrimBesideACopy(t *testing.T) {
	store := replicatest.New()
	copies := newNode("c", store.At(nil), 3)
	if err := copies.open(); err != nil {
		t.Fatal(err)
	}
	begins := func() {}
	a := newNode("a", store.At(func(txn *replica.Txn) replicatest.Fate {
		if trims(txn) {
			begins()
		}
		return replicatest.Answered
	}), 1)
	b := newNode("b", store.At(nil), 2)
	if err := errors.Join(a.open(), b.open(), a.lead()); err != nil {
		t.Fatal(err)
	}
	commits(t, a, 10, 10)
	if _, err := b.log.Follow(0); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{a, b} {
		if err := errors.Join(journaltest.Whole(n.log), n.log.Tell(replica.Standing{Through: 10})); err != nil {
			t.Fatal(err)
		}
	}
	begins = func() {
		if err := copies.log.Tell(replica.Standing{Copies: true}); err != nil {
			t.Error(err)
		}
	}
	if through, err := a.log.Trim(); through != 0 || err != nil {
		t.Errorf("trimmed through commit %d while a node copies: %v", through, err)
	}
	if _, err := copies.log.Follow(0); err != nil {
		t.Errorf("the node that copies: %v", err)
	}
	begins = func() {}
	if err := copies.log.Tell(replica.Standing{Through: 8}); err != nil {
		t.Fatal(err)
	}
	if through, err := a.log.Trim(); through != 9 || err != nil {
		t.Errorf("trimmed through commit %d, want 9: %v", through, err)
	}
}

// TestTrimBesideAFirstWord has a node tell for the first time just before the log is trimmed
// by the word of the other node alone: commits missing on the new node's disk stay.
func TestTrimBesideAFirstWord(t *testing.T) {
	store := replicatest.New()
	b := newNode("b", store.At(nil), 2)
	first := true
	a := newNode("a", store.At(func(txn *replica.Txn) replicatest.Fate {
		if trims(txn) && first {
			first = false
			if err := b.log.Tell(replica.Standing{Last: 3}); err != nil {
				t.Error(err)
			}
		}
		return replicatest.Answered
	}), 1)
	if err := errors.Join(a.open(), b.open(), a.lead()); err != nil {
		t.Fatal(err)
	}
	commits(t, a, 3, 10)
	if err := errors.Join(journaltest.Whole(a.log), a.log.Tell(replica.Standing{Through: 3})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if through, err := a.log.Trim(); through != 0 || err != nil {
			t.Errorf("trimmed through commit %d, on one disk alone: %v", through, err)
		}
	}
	if first {
		t.Error("nothing was to be trimmed")
	}
}

// TestTrimmedBetweenReads has a long commit trimmed between the reads of its record and of
// its parts: the reader is behind, and nothing is damaged.
func TestTrimmedBetweenReads(t *testing.T) {
	store := replicatest.New()
	a := newNode("a", store.At(nil), 1)
	if err := errors.Join(a.open(), a.lead()); err != nil {
		t.Fatal(err)
	}
	commits(t, a, 4, 3000)
	if err := errors.Join(journaltest.Whole(a.log), a.log.Tell(replica.Standing{Through: 4})); err != nil {
		t.Fatal(err)
	}
	reads := 0
	b := newNode("b", store.At(func(txn *replica.Txn) replicatest.Fate {
		if txn == nil {
			reads++
		}
		if reads == 2 {
			if _, err := a.log.Trim(); err != nil {
				t.Error(err)
			}
		}
		return replicatest.Answered
	}), 2)
	if err := b.open(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.log.Follow(0); !errors.Is(err, replica.ErrBehind) {
		t.Error(err)
	}
}

// TestLateFirstCommit has a repetition of the first commit arrive after the log was trimmed:
// it is not put again.
func TestLateFirstCommit(t *testing.T) {
	store := replicatest.New()
	late := true
	n := newNode("a", store.At(func(txn *replica.Txn) replicatest.Fate {
		if txn != nil && len(txn.If) == 3 && late {
			late = false
			return replicatest.Late
		}
		return replicatest.Answered
	}), 1)
	if err := errors.Join(n.open(), n.lead()); err != nil {
		t.Fatal(err)
	}
	var b journal.Batch
	for range 3 {
		b.Reset()
		b.Put(1, []byte("k"), []byte("v"))
		if err := n.log.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(journaltest.Whole(n.log), n.log.Tell(replica.Standing{Through: 3})); err != nil {
		t.Fatal(err)
	}
	if through, err := n.log.Trim(); through != 2 || err != nil {
		t.Fatalf("trimmed through %d: %v", through, err)
	}
	if !store.Deliver() {
		t.Fatal("nothing is late")
	}
	for _, e := range store.Entries() {
		if e.Key == keys.Prefix()+"log/0000000000000001" {
			t.Error("commit 1 is put again")
		}
	}
}
