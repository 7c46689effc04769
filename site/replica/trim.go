package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/site/journal"
)

// Standing is what a node tells of itself in the store.
type Standing struct {
	// Node is the node's name.
	Node string `json:"node"`
	// Through is the last commit that the node's base holds durably, Last the last commit
	// that it knows.
	Through journal.Number `json:"through"`
	Last    journal.Number `json:"last"`
	// Copies says that the node copies another node's base, and needs all commits behind
	// Through meanwhile.
	Copies bool `json:"copies,omitempty"`
	// Build is the build that runs, HTTP where its HTTP server listens.
	Build string `json:"build,omitempty"`
	HTTP  string `json:"http,omitempty"`
	// Time is when the node told this, in Unix milliseconds by its clock.
	Time int64 `json:"time"`
}

// Tell stores what this node tells of itself, in place of what it told before. Calls may
// not be concurrent with each other.
func (l *Log) Tell(s Standing) error {
	s.Node = l.o.Node
	value, err := json.Marshal(&s)
	if err != nil {
		return fmt.Errorf("encoding the standing of the node: %w", err)
	}
	if err := l.tell(&s, value); err != nil {
		return fmt.Errorf("telling of this node: %w", err)
	}
	return nil
}

func (l *Log) tell(s *Standing, value []byte) error {
	key := l.o.Keys.node(l.o.Node)
	found, err := l.read(key, key+"\x00", 1)
	if err != nil {
		return err
	}
	for {
		var before Entry
		if len(found) > 0 {
			before = found[0]
		}
		// An earlier word of this node that is still on its way fails from here on: it
		// could tell of commits on a disk that the node has lost.
		t := &Txn{
			If:   []Guard{{key, before.Rev}},
			Then: []Change{{Key: key, Value: value}},
			Else: []string{key},
		}
		if goesBack(s, before.Value) {
			t.Then = append(t.Then, Change{Key: l.o.Keys.back(), Value: []byte(l.o.Node)})
		}
		done, err := l.do(t)
		if err != nil || done.Held {
			return err
		}
		found = done.Found
		if len(found) > 0 && bytes.Equal(found[0].Value, value) {
			return nil // an earlier repetition was carried out
		}
	}
}

// goesBack reports whether a node needs commits that it did not need by its last word. A
// node that never told anything needed none.
func goesBack(s *Standing, before []byte) bool {
	var was Standing
	if len(before) == 0 || json.Unmarshal(before, &was) != nil {
		return true
	}
	return s.Copies || s.Through < was.Through
}

// Nodes returns what the nodes of the site told last, by name.
func (l *Log) Nodes() ([]Standing, error) {
	from, to := l.o.Keys.nodes()
	entries, err := l.read(from, to, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the nodes of the site: %w", err)
	}
	all := make([]Standing, 0, len(entries))
	for _, e := range entries {
		var s Standing
		if err := json.Unmarshal(e.Value, &s); err != nil {
			return nil, fmt.Errorf("%w: node %.100q: %w", errRecord, e.Key, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// trimmable returns through which commit the log may be trimmed: at least two nodes have
// these commits on their own disks, or all if there are fewer, and no node copies them. The
// last commit stays: it is the guard of the next.
func trimmable(nodes []Standing, last journal.Number) journal.Number {
	if last == 0 {
		return 0
	}
	var have []journal.Number
	most := last - 1
	for _, s := range nodes {
		if s.Copies {
			most = min(most, s.Through)
		} else {
			have = append(have, s.Through)
		}
	}
	if len(have) == 0 {
		return 0
	}
	slices.Sort(have)
	return min(most, have[max(0, len(have)-2)])
}

// Trim deletes the commits from the log that no node needs, as the active node, and
// returns the number of the last commit that it deleted now or before; 0 for none.
func (l *Log) Trim() (journal.Number, error) {
	term, last := l.Term(), l.Last()
	if term == 0 {
		return 0, errFollows
	}
	// Read before the nodes: one that goes back afterwards, or begins to copy, is not among
	// them.
	back, err := l.read(l.o.Keys.back(), l.o.Keys.back()+"\x00", 1)
	if err != nil {
		return 0, fmt.Errorf("reading whether a node went back: %w", err)
	}
	still := Guard{Key: l.o.Keys.back(), Rev: Absent}
	if len(back) > 0 {
		still.Rev = back[0].Rev
	}
	nodes, err := l.Nodes()
	if err != nil {
		return 0, err
	}
	through := trimmable(nodes, last)
	if through == 0 {
		return 0, nil
	}
	from, _ := l.o.Keys.commits(0)
	done, err := l.do(&Txn{
		If: []Guard{{l.o.Keys.leader(), term}, still},
		Then: []Change{
			{Key: from, To: l.o.Keys.commit(through + 1)},
			{Key: l.o.Keys.parts(0), To: l.o.Keys.parts(through + 1)},
		},
		Else: []string{l.o.Keys.leader()},
	})
	if err == nil && !done.Held {
		if leader, _ := done.found(l.o.Keys.leader()); leader.Rev == term {
			return 0, nil // a node went back: another time
		}
		err = ErrFenced
	}
	if err != nil {
		return 0, fmt.Errorf("trimming the log: %w", err)
	}
	return through, nil
}

// Forget deletes what a node told of itself: it never comes back, and nothing is kept for it.
func (l *Log) Forget(node string) error {
	if node == l.o.Node {
		return errors.New("forgetting a node: it is this one")
	}
	key := l.o.Keys.node(node)
	if _, err := l.do(&Txn{Then: []Change{{Key: key, To: key + "\x00"}}}); err != nil {
		return fmt.Errorf("forgetting node %s: %w", node, err)
	}
	return nil
}
