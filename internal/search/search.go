// Package search goes through all states that a few sites can come to, for the tests of
// protocols. A search has no bound of depth: at the end every state was seen. The package
// knows no protocol: a World implements one.
package search

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Most bounds the states of a search: all states stay in memory.
const Most = 2_000_000

// World is a state of all sites, with the network between them.
type World[W any] interface {
	// Next calls do for each event that may come next, and changes nothing: do hands a copy
	// of the World to happen. Package fmt prints the name of the event.
	Next(do func(name any, happen func(W)))
	// Clone returns a copy that shares nothing that an event changes.
	Clone() W
	// Check returns an error if an invariant does not hold.
	Check() error
	// Fingerprint is the same for states that differ in nothing that matters.
	Fingerprint() string
}

// Line is the name of an event, written only for an error.
type Line func() string

// String implements fmt.Stringer.
func (l Line) String() string { return l() }

// Set appends a list to a key, alike for all orders of the list. The code of an element
// must say where the code ends.
func Set[M any](key []byte, list []M, encode func(m *M, key []byte) []byte) []byte {
	prints := make([]string, len(list))
	for i := range list {
		prints[i] = string(encode(&list[i], nil))
	}
	slices.Sort(prints)
	key = binary.AppendUvarint(key, uint64(len(prints)))
	for _, p := range prints {
		key = append(key, p...)
	}
	return key
}

// event is how a state was reached.
type event struct {
	before *event
	what   any
}

// String lists the events that led to a state, one a line.
func (e *event) String() string {
	var list []string
	for ; e != nil; e = e.before {
		list = append(list, fmt.Sprint(e.what))
	}
	slices.Reverse(list)
	return strings.Join(list, "\n")
}

// All goes through all states from the first one on, and returns the number of states. Each
// is checked, and visited once. An error of either ends the search, and so do more than
// [Most] states. The error names the events that led there.
func All[W World[W]](first W, visit func(W) error) (states int, err error) {
	type reached struct {
		world W
		by    *event
	}
	seen := map[string]bool{first.Fingerprint(): true}
	todo := []reached{{world: first}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := visit(at.world); err != nil {
			return len(seen), fmt.Errorf("after\n%v\n%w", at.by, err)
		}
		at.world.Next(func(what any, happen func(W)) {
			if err != nil {
				return
			}
			next := reached{at.world.Clone(), &event{at.by, what}}
			happen(next.world)
			if e := next.world.Check(); e != nil {
				err = fmt.Errorf("after\n%v\n%w", next.by, e)
				return
			}
			if key := next.world.Fingerprint(); !seen[key] {
				seen[key] = true
				todo = append(todo, next)
			}
		})
		if err != nil {
			return len(seen), err
		}
		if len(seen) > Most {
			return len(seen), fmt.Errorf("more than %d states", Most)
		}
	}
	return len(seen), nil
}
