package predict

import "math"

// history keeps the newest bins' net demand, up to a bound.
type history struct {
	ring []float64
	cap  int
	// seen counts all bins ever.
	seen int
}

// maxHistory bounds the bins that the regressions keep: 64 KB. At five minutes a bin it
// is four weeks. Seasons that do not fit twice are not looked for.
const maxHistory = 8192

func newHistory(most int) history { return history{cap: most} }

func (h *history) push(net float64) {
	if len(h.ring) < h.cap {
		h.ring = append(h.ring, net)
	} else {
		h.ring[h.seen%h.cap] = net
	}
	h.seen++
}

// len returns the number of kept bins.
func (h *history) len() int { return len(h.ring) }

// ago returns the bin that is k before the newest, NaN if it is not kept.
func (h *history) ago(k int) float64 {
	if k < 0 || k >= len(h.ring) {
		return math.NaN()
	}
	return h.ring[(h.seen-1-k)%h.cap]
}

func (h *history) state(c *codec) {
	n := len(h.ring)
	c.integer(&n, 0, h.cap)
	c.integer(&h.seen, n, math.MaxInt)
	if c.reading {
		if n < h.cap && h.seen != n || n > len(c.buf)/8 {
			c.failed = true
			return
		}
		h.ring = make([]float64, n)
	}
	for i := range h.ring {
		c.value(&h.ring[i])
	}
}

// fitted says when a model is due to be fitted anew. It is due when it has seen an eighth
// more bins, so that fits cost little beside their gain.
type fitted struct{ at int }

// due reports whether to fit now, and takes note of it.
func (f *fitted) due(seen, first int) bool {
	if seen < first || f.at > 0 && seen-f.at < min(max(f.at/8, 24), maxHistory/8) {
		return false
	}
	f.at = seen
	return true
}
