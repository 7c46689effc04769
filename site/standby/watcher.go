package standby

import (
	"time"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
)

// signs are a node's view of the active node in the store.
type signs struct {
	leader replica.Leader
	// beat is the revision of the last sign of life, last the last commit.
	beat int64
	last journal.Number
	// word is the value of the last sign of life.
	word word
}

// word is the value of a sign of life.
type word struct {
	// To is the node that is to go on: the active node has stopped serving. "*" is any.
	To string `json:"to,omitempty"`
	// Term is the term of the node that said so.
	Term int64 `json:"term"`
}

// anyNode stands for any node in word.To.
const anyNode = "*"

// watcher decides when a node tries to take over.
type watcher struct {
	self string
	// patience is how long the active node may give no sign, interval the time between two looks.
	patience, interval time.Duration

	seen   signs
	looked time.Duration
	silent time.Duration
}

// due takes up the signs at a time, and reports whether the node has to take
// over. Time without answers of the store is no silence of the active node.
func (w *watcher) due(now time.Duration, s signs) bool {
	switch {
	case s.leader.Term != w.seen.leader.Term, s.beat != w.seen.beat, s.last != w.seen.last, w.looked == 0:
		w.silent = 0
	default:
		w.silent += min(now-w.looked, 2*w.interval)
	}
	w.seen, w.looked = s, max(now, 1)
	switch {
	case s.leader.Term == 0:
		return true // nobody is active
	case s.word.Term == s.leader.Term && s.word.To == w.self:
		return true
	case s.word.Term == s.leader.Term && s.word.To == anyNode:
		return true
	case s.word.Term == s.leader.Term && s.word.To != "":
		// Handed over to another node, which may need a moment: an earlier life of this node
		// that did so must not be faster.
	case s.leader.Node == w.self:
		return true // an earlier life of this node was active
	}
	return w.silent >= w.patience
}

// lost starts the silence anew: another node was faster, which needs time for a sign.
func (w *watcher) lost() { w.silent = 0 }
