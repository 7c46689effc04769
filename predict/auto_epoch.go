package predict

import "math"

// autoEpoch is Auto over more than one bin. A model that forecasts the next bin
// best may be unstable when it is asked to go on from its own forecasts, so what
// is best over an epoch is learnt from epochs: by the same hedge, over nine ways
// to go on from the forecast of the next bin, by the absolute error of the
// epoch's net demand. One epoch is judged at a time, to keep 0.1 KB:
//
//   - the hedge over the experts, as if what was forecast had come
//   - to stay; to go to the mean, or to one of two smoothed levels
//   - to go to this time of the day or, after two weeks, of the week, by a
//     twentieth or a fifth of the distance a bin
type autoEpoch struct {
	loss, told [epochWays]float32
	// sum is the demand of the epoch under judgement, left its bins to come, and
	// judged how many have been.
	sum          float64
	left, judged int
}

const (
	wayHedge = iota
	wayStay
	wayMean
	waySlow
	waySmooth
	wayDay
	_
	wayWeek
	_
	epochWays
)

// homing are how much of the distance to the season is left after a bin.
var homing = [...]float64{.95, .8}

// way fills in a path, given that of the hedge over the experts.
func (m *auto) way(way int, next, hedge []float64) {
	copy(next, hedge)
	if way == wayHedge {
		return
	}
	bin := m.seen
	target := func(int) float64 { return hedge[0] }
	keep := 0.
	switch {
	case way == wayMean:
		target = func(int) float64 { return m.mean }
	case way == waySlow:
		target = func(int) float64 { return m.smooth[0] }
	case way == waySmooth:
		target = func(int) float64 { return m.smooth[1] }
	case way >= wayDay && m.season.ready(bin, 2):
		p, s := &m.season.day, m.season
		if way >= wayWeek && s.ready(bin, 14) {
			p = &s.week
		}
		target = func(k int) float64 { return p.at(bin + k - s.start) }
		keep = homing[(way-wayDay)%len(homing)]
	}
	off := hedge[0] - target(0)
	for k := 1; k < len(next); k++ {
		off *= keep
		next[k] = target(k) + off
	}
}

// weigh fills in how much each way counts.
func (e *autoEpoch) weigh(w *[epochWays]float64) {
	weighLosses(w[:], e.loss[:], e.loss[wayStay], hedges[0].rate)
}

// observe takes in a bin of the epoch under judgement, and reports whether the
// next one may begin.
func (e *autoEpoch) observe(net float64, horizon int) bool {
	if e.left == 0 || math.IsNaN(net) {
		e.left = 0
		return true
	}
	e.sum += net
	if e.left--; e.left > 0 {
		return false
	}
	e.judged++
	fresh := max(1-math.Pow(1-hedges[0].forget, float64(horizon)), 1/float64(e.judged))
	for i, t := range e.told {
		e.loss[i] += float32(fresh * (math.Abs(e.sum-float64(t)) - float64(e.loss[i])))
	}
	return true
}

// begin puts the next epoch under judgement.
func (m *auto) begin(horizon int) {
	hedge, next := make([]float64, horizon), make([]float64, horizon)
	m.follow(hedge)
	for i := range m.epoch.told {
		m.way(i, next, hedge)
		sum := 0.
		for _, v := range next {
			sum += v
		}
		m.epoch.told[i] = float32(sum)
	}
	m.epoch.sum, m.epoch.left = 0, horizon
}

func (m *auto) path(next []float64) {
	m.follow(next)
	if len(next) == 1 {
		return
	}
	var w [epochWays]float64
	m.epoch.weigh(&w)
	var room [2][16]float64
	hedge, way := room[0][:0], room[1][:]
	if len(next) > len(way) {
		way = make([]float64, len(next))
	}
	hedge = append(hedge, next...)
	way = way[:len(next)]
	clear(next)
	for i, weight := range w {
		if weight < 1e-6 {
			continue
		}
		m.way(i, way, hedge)
		for k, v := range way {
			next[k] += weight * v
		}
	}
}

func (e *autoEpoch) state(c *codec, horizon int) {
	for _, fs := range [...][]float32{e.loss[:], e.told[:]} {
		for i := range fs {
			c.single(&fs[i])
		}
	}
	c.float(&e.sum)
	c.integer(&e.left, 0, horizon)
	c.integer(&e.judged, 0, math.MaxInt)
}
