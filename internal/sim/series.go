package sim

import (
	"cmp"
	"slices"
)

// series holds records by their numbers, in order. What is in it never changes, so
// that a copy shares what it has with the original, whatever either adds or forgets.
type series[V any] struct{ list []entry[V] }

type entry[V any] struct {
	number uint64
	value  V
}

func (s *series[V]) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(s.list, number, func(n entry[V], number uint64) int { return cmp.Compare(n.number, number) })
}

// set adds a record, mostly behind all others, or puts it in the place of another.
func (s *series[V]) set(number uint64, value V) {
	n := entry[V]{number, value}
	if last := len(s.list) - 1; last < 0 || s.list[last].number < number {
		s.list = append(s.list, n)
		return
	}
	i, found := s.find(number)
	next := i
	if found {
		next++
	}
	s.list = slices.Concat(s.list[:i], []entry[V]{n}, s.list[next:])
}

// forget drops all below a number.
func (s *series[V]) forget(below uint64) {
	i, _ := s.find(below)
	s.list = s.list[i:]
}

// copied is a copy.
func (s *series[V]) copied() series[V] { return series[V]{slices.Clip(s.list)} }

// values are all records, in order.
func (s *series[V]) values() []V {
	if len(s.list) == 0 {
		return nil
	}
	list := make([]V, len(s.list))
	for i := range s.list {
		list[i] = s.list[i].value
	}
	return list
}
