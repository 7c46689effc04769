// Package replicatest is a model of etcd for tests: linearizable, in memory, with the
// faults of a network between it and its callers. It refuses nothing that etcd would take.
package replicatest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/samya-db/samya/site/replica"
)

// Fate is the fate of a call.
type Fate int

// The fates. All but Answered end in an error.
const (
	// Answered: the call is carried out, and its answer comes.
	Answered Fate = iota
	// Unsent: the call never reaches the store.
	Unsent
	// Unanswered: the call is carried out, and its answer is lost.
	Unanswered
	// Late: the call is still on its way. It is carried out at some later call of Deliver.
	Late
	// Refused: the store is out of space, and says so. It still takes deletions and reads.
	Refused
)

// ErrNoAnswer is the error of a call with a lost answer.
var ErrNoAnswer = errors.New("no answer from the store")

// Store is the store that all nodes share.
type Store struct {
	mu      sync.Mutex
	entries map[string]replica.Entry
	rev     int64
	late    []*replica.Txn
	// Took, if not nil, is told of each transaction that was carried out with all guards
	// held.
	Took func(t *replica.Txn, rev int64)
}

// New returns an empty store.
func New() *Store { return &Store{entries: make(map[string]replica.Entry), rev: 1} }

// At returns the store as a node sees it. fate, if not nil, is asked for the fate of each
// call; a read has no transaction.
func (s *Store) At(fate func(t *replica.Txn) Fate) replica.KV {
	if fate == nil {
		fate = func(*replica.Txn) Fate { return Answered }
	}
	return &view{s, fate}
}

// Deliver carries out the call that is on its way since the longest time, and reports
// whether there was one.
func (s *Store) Deliver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) == 0 {
		return false
	}
	t := s.late[0]
	s.late = s.late[1:]
	s.do(t)
	return true
}

// Copy is the content of a store at a moment.
type Copy map[string]replica.Entry

// Copy returns the content of the store.
func (s *Store) Copy() Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.entries)
}

// Restore puts the store back to an earlier copy. Revisions go on, as etcd's do after a
// restore with bumped revisions.
func (s *Store) Restore(c Copy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.late = maps.Clone(c), nil
}

// Entries returns all entries in the order of their keys.
func (s *Store) Entries() []replica.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.between("", "\xff", 0)
}

type view struct {
	store *Store
	fate  func(t *replica.Txn) Fate
}

// Do implements replica.KV.
func (v *view) Do(t *replica.Txn) (*replica.Done, error) {
	fate := v.fate(t)
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	switch fate {
	case Unsent:
		return nil, ErrNoAnswer
	case Late:
		v.store.late = append(v.store.late, t.Clone())
		return nil, ErrNoAnswer
	case Refused:
		if slices.ContainsFunc(t.Then, func(c replica.Change) bool { return c.To == "" }) {
			return nil, replica.ErrRefused
		}
	case Answered, Unanswered:
	}
	done := v.store.do(t)
	if fate == Unanswered {
		return nil, ErrNoAnswer
	}
	return done, nil
}

// Read implements replica.KV.
func (v *view) Read(from, to string, limit int) ([]replica.Entry, error) {
	if f := v.fate(nil); f != Answered && f != Refused {
		return nil, ErrNoAnswer
	}
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	return v.store.between(from, to, limit), nil
}

func (s *Store) between(from, to string, limit int) []replica.Entry {
	var found []replica.Entry
	for _, key := range slices.Sorted(maps.Keys(s.entries)) {
		if key >= from && key < to && (limit == 0 || len(found) < limit) {
			found = append(found, s.entries[key])
		}
	}
	return found
}

// do carries out a transaction, with mu held.
func (s *Store) do(t *replica.Txn) *replica.Done {
	held := !slices.ContainsFunc(t.If, func(g replica.Guard) bool {
		e, ok := s.entries[g.Key]
		if g.Rev == replica.Present {
			return !ok
		}
		return e.Rev != g.Rev // an entry that is not there has Rev 0
	})
	if !held {
		d := &replica.Done{}
		for _, key := range t.Else {
			if e, ok := s.entries[key]; ok {
				d.Found = append(d.Found, e)
			}
		}
		return d
	}
	if len(t.Then) > 0 {
		s.rev++
	}
	for _, c := range t.Then {
		if c.To != "" {
			maps.DeleteFunc(s.entries, func(key string, _ replica.Entry) bool { return key >= c.Key && key < c.To })
			continue
		}
		s.entries[c.Key] = replica.Entry{Key: strings.Clone(c.Key), Value: slices.Clone(c.Value), Rev: s.rev}
	}
	if s.Took != nil {
		s.Took(t, s.rev)
	}
	return &replica.Done{Held: true, Rev: s.rev}
}
