package standby

import (
	"testing"
	"time"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
)

// TestWatcher: a node takes over where nobody is active, where its own earlier life was,
// where the active node says so, and after enough silence. Time without answers of the
// store is no silence.
func TestWatcher(t *testing.T) {
	const patience, interval = 1500 * time.Millisecond, 150 * time.Millisecond
	at := func(term, beat int64, last journal.Number) signs {
		return signs{leader: replica.Leader{Node: "a", Term: term}, beat: beat, last: last}
	}
	said := func(s signs, to string, term int64) signs {
		s.word = word{To: to, Term: term}
		return s
	}
	for name, looks := range map[string][]look{
		"nobody is active":               {{0, signs{}, true}},
		"an earlier life of its own was": {{0, signs{leader: replica.Leader{Node: "b", Term: 7}, beat: 3}, true}},
		"handed over to this node":       {{0, said(at(5, 1, 1), "b", 5), true}},
		"handed over to any node":        {{0, said(at(5, 1, 1), anyNode, 5), true}},
		"handed over to another node":    {{0, said(at(5, 1, 1), "c", 5), false}},
		"handed over by an earlier life of its own": beating(interval, func(i int) (signs, bool) {
			return said(signs{leader: replica.Leader{Node: "b", Term: 5}, beat: 1, last: 1}, "c", 5), i >= 10
		}),
		"an earlier life of its own, before a hand-over": {{0, said(signs{leader: replica.Leader{Node: "b", Term: 5}}, "c", 4), true}},
		"handed over in an earlier term":                 {{0, said(at(5, 1, 1), "b", 4), false}},
		"beats are signs":                                beating(interval, func(i int) (signs, bool) { return at(5, int64(i), 1), false }),
		"commits are signs":                              beating(interval, func(i int) (signs, bool) { return at(5, 1, journal.Number(i)), false }),
		"a new term is a sign":                           beating(interval, func(i int) (signs, bool) { return at(int64(1+i), 1, 1), false }),
		"silence for as long as the patience":            beating(interval, func(i int) (signs, bool) { return at(5, 1, 1), i >= 10 }),
		"the store was away between two looks":           {{interval, at(5, 1, 1), false}, {time.Hour, at(5, 1, 1), false}, {time.Hour + interval, at(5, 1, 1), false}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watcher{self: "b", patience: patience, interval: interval}
			for i, l := range looks {
				if due := w.due(l.at, l.sees); due != l.due {
					t.Errorf("look %d at %v: due %t, want %t", i, l.at, due, l.due)
				}
			}
		})
	}
}

// look is what a node sees at a time, and whether the node is to take over then.
type look struct {
	at   time.Duration
	sees signs
	due  bool
}

// beating is 20 looks at a distance.
func beating(interval time.Duration, sees func(i int) (signs, bool)) []look {
	var looks []look
	for i := range 20 {
		s, due := sees(i)
		looks = append(looks, look{time.Duration(i+1) * interval, s, due})
	}
	return looks
}

// TestLostRace: a node that another one was faster than waits for its patience again.
func TestLostRace(t *testing.T) {
	w := watcher{self: "c", patience: 3, interval: 1}
	s := signs{leader: replica.Leader{Node: "a", Term: 1}}
	for at := time.Duration(1); !w.due(at, s); at++ {
		if at > 10 {
			t.Fatal("never due")
		}
	}
	w.lost()
	if w.due(w.looked+1, s) {
		t.Error("due at once after a lost race")
	}
}
