package workload

// ring is the window: its requests in sequence, in a ring of words. Each request is its
// number of keys, its load, and its keys.
type ring struct {
	words    []uint32
	first    uint64 // where the oldest request begins; positions only grow
	next     uint64 // where the next request will begin
	requests int
	out      []Vertex // the result of the last pop
}

const (
	headWords    = 3
	minRingWords = 1 << 10
	maxRingWords = 1 << 24
)

func newRing() ring { return ring{words: make([]uint32, minRingWords)} }

// fits reports whether a request of n keys fits, now or in a longer ring.
func (r *ring) fits(n int) bool {
	return r.next-r.first+headWords+uint64(n) <= maxRingWords
}

// push puts a request in. It must fit.
func (r *ring) push(vs []Vertex, load Load) {
	for r.next-r.first+headWords+uint64(len(vs)) > uint64(len(r.words)) {
		r.grow()
	}
	mask := uint64(len(r.words) - 1)
	at := r.next
	r.words[at&mask] = uint32(len(vs))
	r.words[(at+1)&mask] = load[0]
	r.words[(at+2)&mask] = load[1]
	at += headWords
	for _, v := range vs {
		r.words[at&mask] = uint32(v)
		at++
	}
	r.next = at
	r.requests++
}

func (r *ring) grow() {
	words := make([]uint32, 2*len(r.words))
	from, to := uint64(len(r.words)-1), uint64(len(words)-1)
	for at := r.first; at < r.next; at++ {
		words[at&to] = r.words[at&from]
	}
	r.words = words
}

// pop takes the oldest request out. The slice is valid until the next pop.
func (r *ring) pop() ([]Vertex, Load) {
	mask := uint64(len(r.words) - 1)
	at := r.first
	n := r.words[at&mask]
	load := Load{r.words[(at+1)&mask], r.words[(at+2)&mask]}
	at += headWords
	r.out = r.out[:0]
	for range n {
		r.out = append(r.out, Vertex(r.words[at&mask]))
		at++
	}
	r.first = at
	r.requests--
	return r.out, load
}
