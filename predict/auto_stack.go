package predict

import "math"

// autoStack regresses an epoch's net demand on the forecasts of the other ways and on the
// newest bins. It forecasts the sum directly; the other ways go on from bin to bin. The
// first regression is almost by least squares. The second is of square roots, which
// bursts do not rule, towards least absolute deviations. Their forecasts are kept within
// the range of the other ways. After a change of regime a regression on both old and new
// levels would go astray.
//
// On most series they are the best ways in the long run. But each of them alone needs
// long to show it where few bursts make up the error. So their losses are lowered once
// enough epochs have been judged.
type autoStack struct {
	plain, roots *fading
	// scale holds the mean absolute errors of both.
	scale [2]float64
}

const (
	// stackExtra is the number of terms beside the ways' forecasts. The terms are the
	// newest bin, two means of earlier bins, and the hours of the day in place of the
	// mean.
	stackExtra = 4
	stackTerms = wayStack + 3
	// stackFirst is the number of epochs before the regressions are solved, and
	// stackTrusted the number before they are favoured.
	stackFirst   = 60
	stackTrusted = 150
	stackScale   = .01
	// stackFloor is five times the mean error: least squares, except for outliers.
	stackFloor = 5
)

// stackFavour holds the factors for the losses of the regressions.
var stackFavour = [...]float32{.98, .92}

func newAutoStack() *autoStack {
	return &autoStack{plain: newFading(stackTerms), roots: newFading(stackTerms)}
}

// favour lowers the losses of the regressions.
func (s *autoStack) favour(loss *[epochWays]float32, judged int32) {
	if s == nil || judged < stackTrusted {
		return
	}
	for i, f := range stackFavour {
		loss[wayStack+i] *= f
	}
}

// extras fills in the terms beside the ways' forecasts.
func (m *auto) extras(t *epochTrial) {
	t.extra = [stackExtra]float32{
		float32(m.lags[0]), float32((m.lags[1] + m.lags[2]) / 2), float32((m.lags[3] + m.lags[4] + m.lags[5]) / 3), float32(m.mean),
	}
	if s := m.season; s.ready(m.seen, 2) {
		sum := 0.
		for k := range m.horizon {
			sum += s.hour.at(s.at(m.seen + k))
		}
		t.extra[stackExtra-1] = float32(sum / float64(m.horizon))
	}
}

// row fills in the features for an epoch's mean bin.
func (t *epochTrial) row(row *[mostTerms + 1]float64, horizon int) {
	for i, told := range t.told[:wayStack] {
		row[i] = float64(told) / float64(horizon)
	}
	for i, v := range t.extra[:stackExtra-1] {
		row[wayStack+i] = float64(v)
	}
	row[wayMean] = float64(t.extra[stackExtra-1])
}

func rootsOf(row []float64) {
	for i, v := range row {
		row[i] = root(v)
	}
}

// tell fills in the forecasts of the regressions, or the hedge's forecast before they are
// solved.
func (s *autoStack) tell(t *epochTrial, horizon int) {
	for i := wayStack; i < epochWays; i++ {
		t.told[i] = t.told[wayHedge]
	}
	if s == nil || !s.plain.solved {
		return
	}
	low, high := t.told[0], t.told[0]
	for _, told := range t.told[:wayStack] {
		low, high = min(low, told), max(high, told)
	}
	var row [mostTerms + 1]float64
	t.row(&row, horizon)
	plain := s.plain.at(row[:stackTerms])
	rootsOf(row[:stackTerms])
	roots := square(s.roots.at(row[:stackTerms]))
	for i, v := range [...]float64{plain, roots} {
		t.told[wayStack+i] = min(max(float32(float64(horizon)*v), low), high)
	}
}

// observe learns from an epoch.
func (s *autoStack) observe(t *epochTrial, horizon, every int, judged int32) {
	var row [mostTerms + 1]float64
	t.row(&row, horizon)
	mean, fade := t.sum/float64(horizon), math.Pow(shortFade, float64(every))
	row[stackTerms] = mean
	miss := math.Abs(mean - float64(t.told[wayStack])/float64(horizon))
	s.scale[0] += stackScale * (miss - s.scale[0])
	s.plain.observe(row[:stackTerms+1], weighMiss(miss, s.scale[0], stackFloor), fade)
	rootsOf(row[:stackTerms+1])
	miss = math.Abs(root(mean) - root(float64(t.told[wayStackRoots])/float64(horizon)))
	s.scale[1] += stackScale * (miss - s.scale[1])
	s.roots.observe(row[:stackTerms+1], weighMiss(miss, s.scale[1], rootFloor), fade)
	if judged > stackFirst {
		s.plain.solve()
		s.roots.solve()
	}
}

func (s *autoStack) state(c *codec) {
	s.plain.state(c)
	s.roots.state(c)
	c.floats(&s.scale[0], &s.scale[1])
	c.failed = c.failed || s.scale[0] < 0 || s.scale[1] < 0
}
