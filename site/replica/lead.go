package replica

import (
	"encoding/json"
	"fmt"
)

// Leader is the active node of a site.
type Leader struct {
	// Node is the name of the node, Run names this start of the node alone.
	Node string `json:"node"`
	Run  uint64 `json:"run,string"`
	// GRPC and HTTP are the host:port where the node listens.
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
	// Term is the node's term; 0: there was never an active node.
	Term int64 `json:"-"`
}

// Leader reads who is active.
func (l *Log) Leader() (Leader, error) {
	key := l.o.Keys.leader()
	found, err := l.read(key, key+"\x00", 1)
	if err != nil || len(found) == 0 {
		return Leader{}, err
	}
	return leaderOf(found[0])
}

func leaderOf(e Entry) (Leader, error) {
	var who Leader
	if err := json.Unmarshal(e.Value, &who); err != nil {
		return Leader{}, fmt.Errorf("%w: its leader: %w", errRecord, err)
	}
	who.Term = e.Rev
	return who, nil
}

// Lead makes the node active in place of seen, and then follows the log to its
// end. won is false if another node was faster, or the seen node is not active any more.
// me.Run must be a new number: the entry of the leader then tells whether a call without an
// answer was carried out.
func (l *Log) Lead(seen, me Leader) (won bool, err error) {
	value, err := json.Marshal(&me)
	if err != nil {
		return false, fmt.Errorf("encoding the leader: %w", err)
	}
	key := l.o.Keys.leader()
	done, err := l.do(&Txn{
		If:   []Guard{{key, seen.Term}},
		Then: []Change{{Key: key, Value: value}},
		Else: []string{key},
	})
	if err != nil {
		return false, fmt.Errorf("taking over the site: %w", err)
	}
	term := done.Rev
	if !done.Held {
		e, _ := done.found(key)
		now, err := leaderOf(e)
		if err != nil || now.Node != me.Node || now.Run != me.Run {
			return false, err
		}
		term = now.Term // an earlier repetition was carried out
	}
	// From here on no earlier term commits: the end that is read now is the end.
	for {
		more, err := l.Follow(0)
		if err != nil {
			return false, fmt.Errorf("taking over the site: %w", err)
		}
		if !more {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.run = term, me.Run
	return true, l.failed
}

// Beat gives a sign of life as the active node.
func (l *Log) Beat(word []byte) error {
	term := l.Term()
	if term == 0 {
		return errFollows
	}
	done, err := l.do(&Txn{
		If:   []Guard{{l.o.Keys.leader(), term}},
		Then: []Change{{Key: l.o.Keys.beat(), Value: word}},
		Else: []string{l.o.Keys.leader()},
	})
	if err == nil && !done.Held {
		leader, _ := done.found(l.o.Keys.leader())
		err = fmt.Errorf("%w: its term is %d, that of this node %d", ErrFenced, leader.Rev, term)
	}
	return err
}

// Signs reads who is active, and the entry of the last sign of life, both at one moment.
func (l *Log) Signs() (leader Leader, beat Entry, err error) {
	from, to := l.o.Keys.Signs()
	found, err := l.read(from, to, mostSigns)
	if err != nil {
		return Leader{}, Entry{}, err
	}
	for _, e := range found {
		switch e.Key {
		case l.o.Keys.beat():
			beat = e
		case l.o.Keys.leader():
			if leader, err = leaderOf(e); err != nil {
				return Leader{}, Entry{}, err
			}
		}
	}
	return leader, beat, nil
}

// mostSigns bounds the keys between those of Signs: a later build may have some.
const mostSigns = 64

// LeaderOf reads who is active, for a node without data.
func LeaderOf(kv KV, keys Keys, wait func(attempt int, failure error) error) (Leader, error) {
	return (&Log{o: Options{KV: kv, Keys: keys, Wait: wait}}).Leader()
}
