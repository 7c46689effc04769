package explore

// queue holds states to expand, by rank; within a rank in the order in which they were
// found.
type queue struct {
	buckets []bucket
	lowest  int
	n       int
}

type bucket struct {
	list []uint32
	head int
}

func (q *queue) push(rank int, i uint32) {
	for rank >= len(q.buckets) {
		q.buckets = append(q.buckets, bucket{})
	}
	b := &q.buckets[rank]
	b.list = append(b.list, i)
	q.lowest = min(q.lowest, rank)
	q.n++
}

func (q *queue) pop() (uint32, bool) {
	for ; q.lowest < len(q.buckets); q.lowest++ {
		b := &q.buckets[q.lowest]
		if b.head < len(b.list) {
			i := b.list[b.head]
			b.head++
			q.n--
			return i, true
		}
		*b = bucket{}
	}
	return 0, false
}
