// Package early runs requests on threads that are assigned to classes of requests before
// the requests are ordered. A conflict costs a counter, not a graph of dependencies. The
// package follows the paper "Early scheduling on steroids: boosting parallel state machine
// replication": classes and their mapping to threads (its Section 3), busy-wait (Section 4)
// and work stealing (Section 5). The graph of dependencies is here too, as a baseline.
//
// The package refuses to know keys, values and partitions: a caller names the class of
// each request. It neither changes a mapping while requests run, nor orders requests of
// classes that do not conflict.
package early

import (
	"errors"
	"fmt"
	"slices"
)

// MaxThreads bounds the threads of a mapping, maxClasses the classes.
const (
	maxClasses = 1024
	MaxThreads = 256
)

// ErrMapping is the error for classes or mappings that break a rule.
var ErrMapping = errors.New("mapping")

// Classes are the classes of requests of an application, numbered from 0, with their
// conflicts. Two classes conflict if a request of the first may conflict with a request of
// the second.
type Classes struct {
	conflicts [][]bool
}

// NewClasses returns n classes without conflicts. n is in 1 to 1,024.
func NewClasses(n int) (*Classes, error) {
	if n < 1 || n > maxClasses {
		return nil, fmt.Errorf("%w: %d classes, must be in 1 to %d", ErrMapping, n, maxClasses)
	}
	c := &Classes{conflicts: make([][]bool, n)}
	for i := range c.conflicts {
		c.conflicts[i] = make([]bool, n)
	}
	return c, nil
}

// Len returns the number of classes.
func (c *Classes) Len() int { return len(c.conflicts) }

// Conflict makes two classes conflict, or a class with itself. It panics if a class does
// not exist.
func (c *Classes) Conflict(a, b int) {
	c.conflicts[a][b], c.conflicts[b][a] = true, true
}

// Conflicts reports whether two classes conflict. It panics if a class does not exist.
func (c *Classes) Conflicts(a, b int) bool { return c.conflicts[a][b] }

// Assignment is a class's part of a mapping.
type Assignment struct {
	// Sequential requests run once all threads have reached them, and hold up all of them.
	// Concurrent requests run on a single thread each, in turns.
	Sequential bool
	// Threads are the class's threads, ascending.
	Threads []int
}

// Mapping assigns threads to classes.
type Mapping struct {
	// Threads is the number of threads, numbered from 0.
	Threads int
	// Of are the assignments by class.
	Of []Assignment
}

// Validate checks a mapping by the paper's rules (Section 3.3). Its errors wrap
// [ErrMapping]; each names the rule and the classes:
//
//   - R1: each class has a thread.
//   - R2: a class that conflicts with itself is sequential.
//   - R3: of two classes that conflict, at least one is sequential.
//   - R4: a sequential class has all threads of each concurrent class that conflicts with it.
//   - R5: two sequential classes that conflict share a thread.
func (c *Classes) Validate(m *Mapping) error {
	if m.Threads < 1 || m.Threads > MaxThreads {
		return fmt.Errorf("%w: %d threads, must be in 1 to %d", ErrMapping, m.Threads, MaxThreads)
	}
	if len(m.Of) != c.Len() {
		return fmt.Errorf("%w: %d assignments for %d classes", ErrMapping, len(m.Of), c.Len())
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrMapping}, args...)...))
	}
	for i, a := range m.Of {
		if len(a.Threads) == 0 {
			bad("R1: class %d has no thread", i)
			continue
		}
		for n, t := range a.Threads {
			if t < 0 || t >= m.Threads || n > 0 && t <= a.Threads[n-1] {
				bad("class %d: threads %v, must ascend from 0 to below %d", i, a.Threads, m.Threads)
				break
			}
		}
	}
	for i, a := range m.Of {
		for j := range i + 1 {
			if b := m.Of[j]; c.conflicts[i][j] {
				if err := pairRule(i, j, &a, &b); err != nil {
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// pairRule checks two conflicting classes.
func pairRule(i, j int, a, b *Assignment) error {
	switch {
	case i == j && !a.Sequential:
		return fmt.Errorf("%w: R2: class %d conflicts with itself, and is not sequential", ErrMapping, i)
	case i == j:
	case !a.Sequential && !b.Sequential:
		return fmt.Errorf("%w: R3: classes %d and %d conflict, and neither is sequential", ErrMapping, j, i)
	case a.Sequential && !b.Sequential && !subset(b.Threads, a.Threads):
		return fmt.Errorf("%w: R4: class %d lacks threads of class %d", ErrMapping, i, j)
	case !a.Sequential && b.Sequential && !subset(a.Threads, b.Threads):
		return fmt.Errorf("%w: R4: class %d lacks threads of class %d", ErrMapping, j, i)
	case a.Sequential && b.Sequential && !meet(a.Threads, b.Threads):
		return fmt.Errorf("%w: R5: classes %d and %d conflict, and share no thread", ErrMapping, j, i)
	}
	return nil
}

func subset(few, many []int) bool {
	return !slices.ContainsFunc(few, func(t int) bool { return !slices.Contains(many, t) })
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(t int) bool { return slices.Contains(b, t) })
}
