package core

// line is a queue of values without pointers. A value keeps its number and its place from
// push to pop. Large chunks hold the values: a line neither copies them to grow, nor
// takes twice the memory that it needs, and collections of garbage pass the chunks by.
type line[T any] struct {
	// chunks hold the values from first on, which is the number of the first value of the
	// first chunk. Numbers wrap around.
	chunks []*[lineChunk]T
	// begin and end are the numbers of the oldest value and of the next value.
	first, begin, end uint32
	// spare is a chunk for reuse.
	spare *[lineChunk]T
}

// lineChunk is the number of values of a chunk. With it chunks of records, 44 bytes each,
// are a whole number of the 8 KiB pages in which Go allocates large objects.
const lineChunk = 1 << 11

// at returns the value of a number, from begin to end.
func (l *line[T]) at(number uint32) *T {
	n := number - l.first
	return &l.chunks[n/lineChunk][n%lineChunk]
}

// push adds a place for a value and returns it. It may hold an old value.
func (l *line[T]) push() *T {
	if l.end-l.first == uint32(len(l.chunks))*lineChunk { //nolint:gosec // far fewer
		chunk := l.spare
		if l.spare = nil; chunk == nil {
			chunk = new([lineChunk]T)
		}
		l.chunks = append(l.chunks, chunk)
	}
	l.end++
	return l.at(l.end - 1)
}

// pop drops the oldest value, of which there is at least one.
func (l *line[T]) pop() {
	l.begin++
	if l.begin-l.first == lineChunk {
		l.spare = l.chunks[0]
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		l.first = l.begin
	}
}

// len is the number of values.
func (l *line[T]) len() int { return int(l.end - l.begin) }
