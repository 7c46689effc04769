package coretest

import (
	"cmp"
	"slices"
)

// Series holds records by their numbers, in order. Its records never change, so a copy
// shares its records with the original, whatever either adds or forgets.
type Series[V any] struct{ List []Entry[V] }

// Entry is a record with its number.
type Entry[V any] struct {
	Number uint64
	Value  V
}

// Find returns the place of a number in List, and whether List has it.
func (s *Series[V]) Find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(s.List, number, func(n Entry[V], number uint64) int { return cmp.Compare(n.Number, number) })
}

// Set adds a record, mostly behind all others, or replaces a record.
func (s *Series[V]) Set(number uint64, value V) {
	n := Entry[V]{number, value}
	if last := len(s.List) - 1; last < 0 || s.List[last].Number < number {
		s.List = append(s.List, n)
		return
	}
	i, found := s.Find(number)
	next := i
	if found {
		next++
	}
	s.List = slices.Concat(s.List[:i], []Entry[V]{n}, s.List[next:])
}

// Forget drops all records below a number.
func (s *Series[V]) Forget(below uint64) {
	i, _ := s.Find(below)
	s.List = s.List[i:]
}

// Copied is a copy.
func (s *Series[V]) Copied() Series[V] { return Series[V]{slices.Clip(s.List)} }

// Values are all records, in order.
func (s *Series[V]) Values() []V {
	if len(s.List) == 0 {
		return nil
	}
	list := make([]V, len(s.List))
	for i := range s.List {
		list[i] = s.List[i].Value
	}
	return list
}
