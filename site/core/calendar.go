package core

import (
	"container/heap"
)

// dated is an item of a calendar.
type dated[T any] interface {
	// before reports whether the item is due ahead of another.
	before(other T) bool
	// index is the place of the item in its calendar, -1 outside of a calendar.
	index() *int32
}

// calendar is a heap of items that keep their places in it: the item that is due next is
// the first. Its methods with exported names are for container/heap alone.
type calendar[T dated[T]] []T

// add puts an item at its place, also if the item is there and has another date now.
func (c *calendar[T]) add(item T) {
	if at := *item.index(); at >= 0 {
		heap.Fix(c, int(at))
		return
	}
	heap.Push(c, item)
}

// remove takes an item out if it is there.
func (c *calendar[T]) remove(item T) {
	if at := *item.index(); at >= 0 {
		heap.Remove(c, int(at))
	}
}

// Len implements heap.Interface.
func (c calendar[T]) Len() int { return len(c) }

// Less implements heap.Interface.
func (c calendar[T]) Less(i, j int) bool { return c[i].before(c[j]) }

// Swap implements heap.Interface.
func (c calendar[T]) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	*c[i].index(), *c[j].index() = int32(i), int32(j) //nolint:gosec // far fewer
}

// Push implements heap.Interface.
func (c *calendar[T]) Push(x any) {
	item := x.(T)
	*item.index() = int32(len(*c)) //nolint:gosec // far fewer
	*c = append(*c, item)
}

// Pop implements heap.Interface.
func (c *calendar[T]) Pop() any {
	old := *c
	item := old[len(old)-1]
	clear(old[len(old)-1:])
	*c = old[:len(old)-1]
	*item.index() = -1
	return item
}
