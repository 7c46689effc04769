package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/site/journal"
)

// Standing is a node's word of itself in the store.
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

// Tell stores this node's standing.
func (l *Log) Tell(s Standing) error {
	s.Node = l.o.Node
	value, err := json.Marshal(&s)
	if err != nil {
		return fmt.Errorf("encoding the standing of the node: %w", err)
	}
	if _, err := l.do(&Txn{Then: []Change{{Key: l.o.Keys.node(l.o.Node), Value: value}}}); err != nil {
		return fmt.Errorf("telling of this node: %w", err)
	}
	return nil
}

// Nodes returns the last standings of the site's nodes, by name.
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
// returns the number of the last commit deleted.
func (l *Log) Trim() (journal.Number, error) {
	term, last := l.Term(), l.Last()
	if term == 0 {
		return 0, errFollows
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
		If: []Guard{{l.o.Keys.leader(), term}},
		Then: []Change{
			{Key: from, To: l.o.Keys.commit(through + 1)},
			{Key: l.o.Keys.parts(0), To: l.o.Keys.parts(through + 1)},
		},
		Else: []string{l.o.Keys.leader()},
	})
	if err == nil && !done.Held {
		err = ErrFenced
	}
	if err != nil {
		return 0, fmt.Errorf("trimming the log: %w", err)
	}
	return through, nil
}

// Forget deletes a node's standing: the node never comes back, and nothing is kept for the node.
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

// First returns the number of the first commit in the log; 0 for none.
func First(kv KV, keys Keys, wait func(attempt int, failure error) error) (journal.Number, error) {
	from, to := keys.commits(0)
	l := &Log{o: Options{KV: kv, Keys: keys, Wait: wait}}
	found, err := l.read(from, to, 1)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	n, ok := keys.number(found[0].Key)
	if !ok {
		return 0, fmt.Errorf("%w: key %.100q", errRecord, found[0].Key)
	}
	return n, nil
}

// Pin has the log keep all commits behind through, while a node without data copies the base
// of another node. now is in Unix milliseconds.
func Pin(kv KV, keys Keys, node string, through journal.Number, now int64, wait func(attempt int, failure error) error) error {
	l := &Log{o: Options{KV: kv, Keys: keys, Node: node, Wait: wait}}
	return l.Tell(Standing{Through: through, Copies: true, Time: now})
}
