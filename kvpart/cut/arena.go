package cut

// arena hands out memory in stack order, so that the many levels and subgraphs of a
// partition share it. The memory handed out is not cleared.
type arena[T any] struct {
	chunks [][]T
	at     mark
}

// mark is a height of the stack.
type mark struct{ chunk, used int }

const chunkSize = 1 << 14

// take returns n elements.
func (a *arena[T]) take(n int) []T {
	for a.at.chunk < len(a.chunks) {
		if c := a.chunks[a.at.chunk]; len(c)-a.at.used >= n {
			s := c[a.at.used : a.at.used+n : a.at.used+n]
			a.at.used += n
			return s
		}
		a.at.chunk++
		a.at.used = 0
	}
	size := max(n, chunkSize)
	if l := len(a.chunks); l > 0 {
		size = max(size, min(2*len(a.chunks[l-1]), 1<<20))
	}
	a.chunks = append(a.chunks, make([]T, size))
	s := a.chunks[a.at.chunk][:n:n]
	a.at.used = n
	return s
}

// shrink gives back the end of s, which was taken last, and keeps n elements.
func (a *arena[T]) shrink(s []T, n int) []T {
	a.at.used -= len(s) - n
	return s[:n:n]
}

// release gives back all memory taken since the stack was m high.
func (a *arena[T]) release(m mark) { a.at = m }
