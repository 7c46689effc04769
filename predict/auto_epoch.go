package predict

import "math"

// autoEpoch is Auto over more than one bin. The best model of the next bin may be
// unstable when it goes on from its own forecasts. So autoEpoch learns from epochs. It is
// a hedge over eleven ways to go on from the forecast of the next bin, by the absolute
// error of the epoch's net demand:
//
//   - the hedge over the experts, as if each forecast had come true
//   - to stay; to go to the mean, or to one of two smoothed levels
//   - to go to this time of the day or, after two weeks, of the week, by a
//     twentieth or a fifth of the distance a bin
//   - two regressions on all of these: see autoStack
//
// Over more than six bins there are two memories of losses, and the weights are the mean
// of both. The long memory knows bursts, the short memory follows a change of regime.
// Epochs overlap: up to six are under judgement at a time. An epoch that is half over
// counts in the short memory as far as it is already worse than whole epochs used to be.
// Waiting for its end would cost the next epoch. The overlap and the regressions take 1.6
// KB.
//
// Over up to six bins a single memory, a single epoch at a time, and no regressions
// suffice. Errors of going on from bin to bin have not yet added up. So the tokens held
// for the peaks of such epochs cost the same. Sites, which forecast six bins, keep 0.2
// KB.
type autoEpoch struct {
	loss [len(epochHedges)][epochWays]float32
	// trials are the epochs under judgement, the oldest first.
	trials []epochTrial
	stack  *autoStack
	// wait counts the bins before the next trial begins, judged the trials so far.
	wait, judged int32
}

// epochTrial is an epoch under judgement. It has the forecast of each way, the further
// features of the regressions, the demand so far, and the number of bins to come.
type epochTrial struct {
	told  [epochWays]float32
	extra [stackExtra]float32
	sum   float64
	left  int32
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
	wayStack
	wayStackRoots
	epochWays
)

const (
	// shortEpoch is the most bins of an epoch that is learnt by the simple means.
	shortEpoch = 6
	// mostTrials bounds the epochs under judgement. Twelve are no better.
	mostTrials = 6
	// halfOver is the share of its bins from which an epoch counts early. early is how
	// much more it then counts.
	halfOver = .5
	early    = 1.5
)

// epochHedges give how much of the losses is forgotten each bin, and how fast weights
// fall with the losses. The first is the short memory. Short epochs have a single memory.
var (
	epochHedges = [...]hedge{{.02, 20}, {.001, 40}}
	shortHedges = [...]hedge{{.005, 40}}
)

// long reports whether epochs are too long to be learnt by the simple means.
func (m *auto) long() bool { return m.horizon > shortEpoch }

// hedgesOfWays returns the memories in use, and ways the number of ways.
func (m *auto) hedgesOfWays() []hedge {
	if m.long() {
		return epochHedges[:]
	}
	return shortHedges[:]
}

func (m *auto) ways() int {
	if m.long() {
		return epochWays
	}
	return wayStack
}

// homing is how much of the distance to the season is left after a bin.
var homing = [...]float64{.95, .8}

// way fills in the path of a way, given the path of the hedge over the experts. It
// excludes the ways of the stack.
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
		target = func(k int) float64 { return p.at(s.at(bin + k)) }
		keep = homing[(way-wayDay)%len(homing)]
	}
	off := hedge[0] - target(0)
	for k := 1; k < len(next); k++ {
		off *= keep
		next[k] = target(k) + off
	}
}

// stackPath turns the hedge's path into a path with another sum: the next bin stays, and
// off is spread over the other bins.
func stackPath(next, hedge []float64, off float64) {
	copy(next, hedge)
	for k := 1; k < len(next); k++ {
		next[k] += off / float64(len(next)-1)
	}
}

// mostTrials bounds the epochs under judgement: a single epoch before the regressions.
func (m *auto) mostTrials() int {
	if m.reg == nil || !m.long() {
		return 1
	}
	return min(mostTrials, m.horizon)
}

// every returns after how many bins the next trial begins.
func (m *auto) every() int { return (m.horizon + m.mostTrials() - 1) / m.mostTrials() }

// fresh returns the weight of the newest trial in a memory that forgets so much a bin.
func (m *auto) fresh(forget float64, judged int32) float64 {
	return max(1-math.Pow(1-forget, float64(m.every())), 1/float64(judged))
}

// weighWays fills in the weight of each way.
func (m *auto) weighWays(w *[epochWays]float64) {
	e := &m.epoch
	var room [epochWays]float64
	*w = room
	one, hedges := room[:m.ways()], m.hedgesOfWays()
	for h, by := range hedges {
		loss := e.loss[h]
		if h == 0 && m.long() {
			m.foresee(&loss)
		}
		unit := loss[wayStay]
		e.stack.favour(&loss, e.judged)
		weighLosses(one, loss[:len(one)], unit, by.rate)
		for i, weight := range one {
			w[i] += weight / float64(len(hedges))
		}
	}
}

// foresee adds to the losses the evidence of epochs that are half over.
func (m *auto) foresee(loss *[epochWays]float32) {
	e, known := &m.epoch, m.epoch.loss[0]
	fresh := early * m.fresh(epochHedges[0].forget, e.judged+1)
	for i := range e.trials {
		t := &e.trials[i]
		share := 1 - float64(t.left)/float64(m.horizon)
		if share < halfOver {
			break // later trials are shorter still
		}
		for way, told := range t.told {
			if miss := math.Abs(t.sum-share*float64(told)) - float64(known[way]); miss > 0 {
				loss[way] += float32(fresh * miss)
			}
		}
	}
}

// observeEpochs takes in a bin of the epochs under judgement.
func (m *auto) observeEpochs(net float64) {
	e := &m.epoch
	if math.IsNaN(net) {
		e.forgetTrials()
	}
	over := 0
	for i := range e.trials {
		t := &e.trials[i]
		t.sum += net
		if t.left--; t.left <= 0 {
			m.judgeEpoch(t)
			over++
		}
	}
	e.trials = append(e.trials[:0], e.trials[over:]...)
	if e.wait = max(0, e.wait-1); e.wait == 0 && m.known > 1 {
		m.begin()
		e.wait = int32(m.every()) //nolint:gosec // at most MaxHorizon
	}
}

// forgetTrials drops epochs with a missing bin.
func (e *autoEpoch) forgetTrials() { e.trials, e.wait = e.trials[:0], 0 }

// judgeEpoch learns from an epoch how good the ways are.
func (m *auto) judgeEpoch(t *epochTrial) {
	e := &m.epoch
	e.judged = min(e.judged+1, math.MaxInt32-1)
	for h, by := range m.hedgesOfWays() {
		fresh, loss := m.fresh(by.forget, e.judged), &e.loss[h]
		for i, told := range t.told[:m.ways()] {
			loss[i] += float32(fresh * (math.Abs(t.sum-float64(told)) - float64(loss[i])))
		}
	}
	if e.stack != nil {
		e.stack.observe(t, m.horizon, m.every(), e.judged)
	}
}

// begin puts the next epoch under judgement.
func (m *auto) begin() {
	var room [2][16]float64
	hedge, way := roomFor(room[0][:], m.horizon), roomFor(room[1][:], m.horizon)
	m.follow(hedge)
	t := epochTrial{left: int32(m.horizon)} //nolint:gosec // at most MaxHorizon
	m.tell(&t, way, hedge)
	e := &m.epoch
	if most := m.mostTrials(); cap(e.trials) < most {
		e.trials = append(make([]epochTrial, 0, most), e.trials...)
	}
	e.trials = append(e.trials, t)
}

// roomFor returns a slice of n numbers, within room if they fit.
func roomFor(room []float64, n int) []float64 {
	if n > len(room) {
		return make([]float64, n)
	}
	return room[:n]
}

// tell fills in the net demand that each way forecasts; way is room for a path.
func (m *auto) tell(t *epochTrial, way, hedge []float64) {
	for i := range wayStack {
		m.way(i, way, hedge)
		sum := 0.
		for _, v := range way {
			sum += v
		}
		t.told[i] = float32(sum)
	}
	if m.long() {
		m.extras(t)
		m.epoch.stack.tell(t, m.horizon)
	}
}

func (m *auto) path(next []float64) {
	m.follow(next)
	if len(next) == 1 {
		return
	}
	var w [epochWays]float64
	m.weighWays(&w)
	var room [2][16]float64
	hedge, way := roomFor(room[0][:], len(next)), roomFor(room[1][:], len(next))
	copy(hedge, next)
	var t epochTrial
	m.tell(&t, way, hedge)
	clear(next)
	for i, weight := range w {
		if weight < 1e-6 {
			continue
		}
		if i < wayStack {
			m.way(i, way, hedge)
		} else {
			stackPath(way, hedge, float64(t.told[i])-float64(t.told[wayHedge]))
		}
		for k, v := range way {
			next[k] += weight * v
		}
	}
}

func (m *auto) epochState(c *codec) {
	e, ways := &m.epoch, m.ways()
	for h := range m.hedgesOfWays() {
		for i := range ways {
			c.single(&e.loss[h][i])
		}
	}
	judged, wait, trials := int(e.judged), int(e.wait), len(e.trials)
	c.integer(&judged, 0, math.MaxInt32-1)
	c.integer(&wait, 0, m.horizon)
	c.integer(&trials, 0, m.mostTrials())
	if c.reading {
		e.judged, e.wait = int32(judged), int32(wait) //nolint:gosec // just bounded
		e.trials, e.stack = make([]epochTrial, trials), nil
		if m.reg != nil && m.long() {
			e.stack = newAutoStack()
		}
	}
	for i := range e.trials {
		t := &e.trials[i]
		for j := range ways {
			c.single(&t.told[j])
		}
		if m.long() {
			for j := range t.extra {
				c.single(&t.extra[j])
			}
		}
		c.float(&t.sum)
		c.failed = c.failed || math.Abs(t.sum) > mostTokens*MaxHorizon
		left := int(t.left)
		c.integer(&left, 1, m.horizon)
		t.left = int32(left) //nolint:gosec // just bounded
	}
	if e.stack != nil {
		e.stack.state(c)
	}
}
