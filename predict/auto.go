package predict

import "math"

// auto is the model Auto: a discounted hedge (Cesa-Bianchi and Lugosi, Prediction,
// Learning, and Games, 2006, section 2.11) over cheap models, its experts. With l an
// expert's absolute error in a bin, L the exponential mean of l, and s the L of the
// random walk:
//
//	L ← .995·L + .005·l,  weight ∝ exp(-40·(L - least L)/s)
//	y(t+1) = Σ weight · the expert's forecast
//
// The weights are the mean of two such hedges, as the best expert can depend on the time
// of the day. The hedge above has a long memory. The other has a short memory, with .97
// and .03, and 20 in place of 40.
//
// Over more than one bin, see autoEpoch. The experts:
//
//   - the random walk; the mean; exponential smoothing at three speeds
//   - regressions on the newest bins towards least absolute deviations, by
//     fading moments: over nine terms; the same of square roots, which bursts do
//     not rule; over three terms with a long memory
//   - the rebound of a jump: y + c·(y(t) - y(t-1)), with c learnt by sign
//     steps for eight sizes of jump, from the random walk and from the last of
//     the regressions
//   - after two days: the mean of this time of the day and, after two weeks, of
//     the week; the random walk above these; a regression on both. If the clocks
//     change they follow, see autoClock
//
// Until 50 bins have had demand there are only the simple experts, in 1 KB. Then all take
// 2 KB, and with seasons up to 4.4 KB; over more than six bins 3.7 and 6.5 KB. A bin
// costs one to four microseconds, and up to seven with a path of twelve. A level shift
// makes all errors large at once. That flattens the weights until the better experts are
// known again.
type auto struct {
	day, horizon int
	// seen counts bins, known bins that were not missing, busy bins with demand.
	seen, known, busy int
	lags              [autoLags]float64 // the newest first
	mean, slow        float64
	smooth            [len(smoothWeights)]float64
	loss              [len(hedges)][autoExperts]float32
	// step is a mean of |y(t) - y(t-1)|, middle about its median.
	step, middle float64
	// low and high are the range of the bins seen, slowly forgotten.
	low, high float64
	jump      [2][jumps]float32
	jumpSize  [jumps]float32
	reg       *autoRegressions
	season    *autoSeason
	epoch     autoEpoch
}

type autoRegressions struct{ short, roots, long *fading }

const (
	autoLags     = 12
	autoFirst    = 50
	shortTerms   = 9
	longTerms    = 3
	seasonTerms  = 12
	shortFade    = .999
	longFade     = .9999
	rootFloor    = .3
	slowWeight   = .05
	meanWeight   = .003
	seasonWeight = .2
	weekWeight   = .35
	jumps        = 8
	jumpStep     = .05
	rangeFade    = .999
	rangeRoom    = .1
)

// hedges give how much of the losses is forgotten each bin, and how fast weights fall
// with the losses.
var hedges = [...]hedge{{.005, 40}, {.03, 20}}

type hedge struct{ forget, rate float64 }

var (
	smoothWeights = [...]float64{.1, .3, .6}
	jumpSizes     = [...]float64{6, 20, 80}
)

// The experts, by their place.
const (
	byWalk = iota
	byMean
	bySmooth
	_
	_
	byWalkJump
	byShort
	byRoots
	byLong
	byLongJump
	byDay
	byWeek
	byWeekWalk
	bySeason
	autoExperts
)

func newAuto(o Options) *auto { return &auto{day: o.Day, horizon: o.Horizon} }

// grow allocates the experts that the demand so far is worth.
func (m *auto) grow() {
	if m.reg != nil || m.busy < autoFirst {
		return
	}
	m.reg = newAutoRegressions()
	if m.long() {
		m.epoch.stack = newAutoStack()
	}
	if m.day >= 8 {
		m.season = newAutoSeason(m.day, m.seen)
	}
}

func newAutoRegressions() *autoRegressions {
	return &autoRegressions{newFading(shortTerms), newFading(shortTerms), newFading(longTerms)}
}

func root(x float64) float64 { return math.Copysign(math.Sqrt(math.Abs(x)), x) }

func square(x float64) float64 { return x * math.Abs(x) }

// tokens is demand, the newest bin first.
type tokens = [autoLags]float64

func (m *auto) shortRow(row *[mostTerms + 1]float64, lags *tokens) {
	copy(row[:7], lags[:7])
	row[7], row[8] = lags[11], m.slow
}

func (m *auto) rootRow(row *[mostTerms + 1]float64, lags *tokens) {
	m.shortRow(row, lags)
	for i, v := range row[:shortTerms] {
		row[i] = root(v)
	}
}

// jumpOf returns the newest jump, and its class among eight by size and sign.
func (m *auto) jumpOf(lags *tokens) (float64, int) {
	d := lags[0] - lags[1]
	size := 0
	for _, s := range jumpSizes {
		if math.Abs(d) > s*m.middle {
			size++
		}
	}
	if d < 0 {
		size += jumps / 2
	}
	return d, size
}

// ask collects the experts' forecasts of a bin.
func (m *auto) ask(f *[autoExperts]float64, lags *tokens, bin int) {
	y := lags[0]
	d, size := m.jumpOf(lags)
	for i := range f {
		f[i] = y
	}
	f[byMean] = m.mean
	copy(f[bySmooth:], m.smooth[:])
	f[byWalkJump] = y + float64(m.jump[0][size])*d
	var row [mostTerms + 1]float64
	if m.reg != nil && m.reg.short.solved {
		m.shortRow(&row, lags)
		f[byShort] = m.reg.short.at(row[:])
		m.rootRow(&row, lags)
		f[byRoots] = square(m.reg.roots.at(row[:]))
		f[byLong] = m.reg.long.at(lags[:])
	}
	f[byLongJump] = f[byLong] + float64(m.jump[1][size])*d
	s := m.season
	if !s.ready(bin, 2) {
		f[byDay], f[byWeek], f[byWeekWalk], f[bySeason] = f[byShort], f[byShort], f[byShort], f[byShort]
		return
	}
	at := s.at(bin)
	f[byDay] = s.day.at(at)
	f[byWeek], f[byWeekWalk] = f[byDay], y+f[byDay]-s.day.at(at+s.length-1)
	if s.ready(bin, 14) {
		f[byWeek] = s.week.at(at)
		f[byWeekWalk] = y + f[byWeek] - s.week.at(at+7*s.length-1)
	}
	f[bySeason] = f[byShort]
	if s.reg.solved {
		s.row(&row, lags, at, m.slow)
		f[bySeason] = s.reg.at(row[:])
	}
}

// weights fills in the weight of each expert.
func (m *auto) weights(w *[autoExperts]float64) {
	var one [autoExperts]float64
	*w = [autoExperts]float64{}
	for h, loss := range m.loss {
		weighLosses(one[:], loss[:], loss[byWalk], hedges[h].rate)
		for i := range w {
			w[i] += one[i] / float64(len(hedges))
		}
	}
}

// weighLosses fills in weights that fall with the losses, measured in unit.
func weighLosses(w []float64, loss []float32, unit float32, rate float64) {
	least := loss[0]
	for _, l := range loss {
		least = min(least, l)
	}
	scale, sum := rate/max(float64(unit), 1e-30), 0.
	for i, l := range loss {
		w[i] = math.Exp(-scale * float64(l-least))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
}

func (m *auto) observe(net float64) {
	m.learn(net)
	if m.horizon > 1 {
		m.observeEpochs(net)
	}
}

// learn takes in a bin.
func (m *auto) learn(net float64) {
	bin := m.seen
	m.seen++
	if s := m.season; s != nil {
		defer func() {
			if !math.IsNaN(net) {
				s.observeClock(net, bin)
			}
			for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
				p.observe(s.at(bin), net)
			}
		}()
	}
	if math.IsNaN(net) {
		return
	}
	m.known++
	if net != 0 {
		m.busy++
	}
	if m.known == 1 {
		for i := range m.lags {
			m.lags[i] = net
		}
		m.mean, m.slow, m.smooth = net, net, [...]float64{net, net, net}
		m.low, m.high = net, net
		return
	}
	var f [autoExperts]float64
	m.ask(&f, &m.lags, bin)
	m.judge(&f, net)
	if m.reg != nil {
		m.regress(&f, net, bin)
	}
	m.grow()
	m.shift(net)
	m.low, m.high = min(net, m.low*rangeFade), max(net, m.high*rangeFade)
	m.mean += max(meanWeight, 1/float64(m.known)) * (net - m.mean)
}

// shift makes a bin the newest.
func (m *auto) shift(net float64) {
	copy(m.lags[1:], m.lags[:])
	m.lags[0] = net
	for i, w := range smoothWeights {
		m.smooth[i] += w * (net - m.smooth[i])
	}
	m.slow += slowWeight * (net - m.slow)
}

// judge learns from a bin how good the experts are, and how jumps rebound.
func (m *auto) judge(f *[autoExperts]float64, net float64) {
	for h := range m.loss {
		fresh, loss := max(hedges[h].forget, 1/float64(m.known-1)), &m.loss[h]
		for i, v := range f {
			loss[i] += float32(fresh * (math.Abs(net-v) - float64(loss[i])))
		}
	}
	fresh := max(hedges[0].forget, 1/float64(m.known-1))
	d, size := m.jumpOf(&m.lags)
	mean := &m.jumpSize[size]
	if *mean += .02 * float32(math.Abs(d)-float64(*mean)); *mean > 0 {
		step := float32(jumpStep * d / float64(*mean))
		for i, v := range [...]float64{f[byWalkJump], f[byLongJump]} {
			if c := &m.jump[i][size]; net < v {
				*c = max(*c-step, -1.5)
				*c = min(*c, 1)
			} else {
				*c = max(min(*c+step, 1), -1.5)
			}
		}
	}
	miss := math.Abs(net - m.lags[0])
	m.step += fresh * (miss - m.step)
	if miss > m.middle {
		m.middle = m.middle*1.02 + 1e-3*m.step
	} else {
		m.middle /= 1.02
	}
}

// weighMiss returns the weight of a row with such an error: towards least absolute
// deviations beyond floor times the scale, least squares below.
func weighMiss(miss, scale, floor float64) float64 {
	if scale < 1e-12 {
		return 1
	}
	return scale / max(math.Abs(miss), floor*scale)
}

// regress makes the regressions learn a bin. Once they know enough it solves them anew.
func (m *auto) regress(f *[autoExperts]float64, net float64, bin int) {
	var row [mostTerms + 1]float64
	m.shortRow(&row, &m.lags)
	row[shortTerms] = net
	m.reg.short.observe(row[:shortTerms+1], weighMiss(net-f[byShort], m.step, fadeFloor), shortFade)
	m.rootRow(&row, &m.lags)
	row[shortTerms] = root(net)
	m.reg.roots.observe(row[:shortTerms+1], weighMiss(root(net)-root(f[byRoots]), 1, rootFloor), shortFade)
	copy(row[:], m.lags[:longTerms])
	row[longTerms] = net
	m.reg.long.observe(row[:longTerms+1], weighMiss(net-f[byLong], m.step, fadeFloor), longFade)
	if s := m.season; s.ready(bin, 2) {
		s.row(&row, &m.lags, s.at(bin), m.slow)
		row[seasonTerms] = net
		s.reg.observe(row[:seasonTerms+1], weighMiss(net-f[bySeason], m.step, fadeFloor), shortFade)
		if s.ready(bin-autoFirst, 2) {
			s.reg.solve()
		}
	}
	if m.busy >= 2*autoFirst {
		m.reg.short.solve()
		m.reg.roots.solve()
		m.reg.long.solve()
	}
}

// follow goes on from forecast to forecast.
func (m *auto) follow(next []float64) {
	after := *m // follow does not change the memory behind its pointers
	var w, f [autoExperts]float64
	m.weights(&w)
	for i := range next {
		after.ask(&f, &after.lags, m.seen+i)
		next[i] = 0
		for j, v := range f {
			next[i] += w[j] * v
		}
		if m.long() {
			next[i] = m.within(next[i])
		}
		after.shift(next[i])
	}
}

// within bounds a forecast by the range of the bins seen and a tenth more. A path that
// goes on from its own forecasts for long may run away.
func (m *auto) within(f float64) float64 {
	span := rangeRoom * (m.high - m.low)
	low := m.low - span
	if m.low >= 0 {
		low = max(low, 0)
	}
	return min(max(f, low), m.high+span)
}

func (m *auto) state(c *codec) {
	c.integer(&m.seen, 0, math.MaxInt)
	c.integer(&m.known, 0, m.seen)
	c.integer(&m.busy, 0, m.known)
	c.array(m.lags[:])
	c.array(m.smooth[:])
	c.floats(&m.mean, &m.slow, &m.step, &m.middle, &m.low, &m.high)
	for _, fs := range [...][]float32{m.loss[0][:], m.loss[1][:], m.jump[0][:], m.jump[1][:], m.jumpSize[:]} {
		for i := range fs {
			c.single(&fs[i])
		}
	}
	regs, seasons := m.reg != nil, m.season != nil
	c.flag(&regs)
	c.flag(&seasons)
	if c.reading {
		m.reg, m.season = nil, nil
		if regs {
			m.reg = newAutoRegressions()
		}
		if c.failed = c.failed || seasons && m.day < 8; c.failed {
			return
		}
		if seasons {
			m.season = newAutoSeason(m.day, 0)
		}
	}
	m.epochState(c)
	if m.reg != nil {
		m.reg.short.state(c)
		m.reg.roots.state(c)
		m.reg.long.state(c)
	}
	if s := m.season; s != nil {
		c.integer(&s.start, 0, m.seen)
		for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
			p.state(c)
		}
		s.clock.state(c, s.length)
		s.reg.state(c)
	}
}
