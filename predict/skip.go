package predict

import "math"

// Skip lets so many bins without an observation pass. It is equivalent to as many
// observations of Missing, but its cost does not grow with their number. After a week's
// gap a model is ready within a millisecond.
func Skip(m Durable, bins int) {
	switch m := m.(type) {
	case *epochs:
		m.skip(bins)
	case *meanRate, *randomWalk, none:
		// Time does not matter to these models.
	default:
		for range bins {
			m.Observe(Missing)
		}
	}
}

// skip equals as many missing bins. All but the last pass at once: an epoch that begins
// there is never judged, as it has a missing bin.
func (e *epochs) skip(bins int) {
	fast := bins - 1
	if fast < len(e.bins) {
		for range bins {
			e.Observe(Missing)
		}
		return
	}
	if s, ok := e.model.(interface{ skip(bins int) }); ok {
		s.skip(fast)
	} else {
		for range fast {
			e.model.observe(math.NaN())
		}
	}
	e.count += fast
	gap := smallBin{float32(math.NaN()), float32(math.NaN())}
	for i := range e.bins {
		e.bins[i] = gap
	}
	for i := range e.pending {
		e.pending[i] = unknown
	}
	e.soon = unknown
	e.Observe(Missing)
}

// skip lets missing bins pass; it writes at most as many as are kept.
func (h *history) skip(bins int) {
	fast := max(0, bins-h.cap)
	if fast > 0 && len(h.ring) < h.cap {
		h.ring = append(h.ring, make([]float64, h.cap-len(h.ring))...)
	}
	h.seen += fast
	for range bins - fast {
		h.push(math.NaN())
	}
}

func (m *seasonalNaive) skip(bins int) { m.history.skip(bins) }

// skip fits nothing: there is nothing new.
func (m *linear) skip(bins int) { m.history.skip(bins) }

func (m *holtWinters) skip(bins int) { m.seen += bins }

func (*constant) skip(int) {}

func (*smoothing) skip(int) {}

func (*rls) skip(int) {}

// settled is the number of missing bins after which arima and lstm forecast the same for
// ever.
const settled = 64

func (m *arima) skip(bins int) {
	for range min(bins, settled) {
		m.observe(math.NaN())
	}
}

func (m *lstm) skip(bins int) {
	m.history.skip(max(0, bins-settled))
	for range min(bins, settled) {
		m.observe(math.NaN())
	}
}

func (m *auto) skip(bins int) {
	if s := m.season; s != nil {
		for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
			p.skip(s.at(m.seen), bins)
		}
	}
	m.seen += bins
	m.epoch.forgetTrials()
}

// skip lets so many missing bins from bin on pass. At most the part that is being
// gathered ends.
func (p *profile) skip(bin, bins int) {
	if end := bin - bin%p.each + p.each - 1; end < bin+bins {
		p.observe(end, math.NaN())
	}
}
