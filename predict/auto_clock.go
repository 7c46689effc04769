package predict

import "math"

// autoClock notices that the clocks of those who make the demand have changed by an
// hour, as they do twice a year: the season then fits better an hour earlier or
// later. It compares the season's absolute error with those an hour off, each a mean
// over some eight hours, and turns the season where an hour off is clearly better. It keeps 0.1 KB.
type autoClock struct {
	// turn is how many bins the season is ahead of the bins, within a week.
	turn int
	// loss are the errors an hour earlier, as is, and an hour later.
	loss [3]float32
	// judged counts bins since the last turn, up to a third of a day.
	judged int
}

// clearly is how small an error has to be, as a share of that of the season as is: of
// the season of a day, which weekends mislead, and of that of a week. A holiday's late
// morning is not enough.
var clearly = [...]float32{.36, .45}

const (
	// clockDays is how many days the season has to be known.
	clockDays = 4
	// clockWindow is the part of a day that errors are a mean over.
	clockWindow = 3
)

// at is the place of a bin in the season.
func (s *autoSeason) at(bin int) int { return bin - s.start + s.clock.turn }

// hourBins is the length of an hour in bins, 0 if it is below one.
func (s *autoSeason) hourBins() int {
	if s.length < 24 {
		return 0
	}
	return (s.length + 12) / 24
}

// observeClock takes in a bin before the season has learnt it.
func (s *autoSeason) observeClock(net float64, bin int) {
	hour := s.hourBins()
	if hour == 0 || !s.ready(bin, clockDays) {
		return
	}
	p, share := &s.day, clearly[0]
	if s.ready(bin, 14) {
		p, share = &s.week, clearly[1]
	}
	c := &s.clock
	week := 7 * s.length
	window := s.length / clockWindow
	c.judged = min(c.judged+1, window)
	for i := range c.loss {
		miss := math.Abs(net - p.at(s.at(bin)+week+(i-1)*hour))
		c.loss[i] += float32((miss - float64(c.loss[i])) / float64(c.judged))
	}
	if c.judged < window {
		return
	}
	best := 1
	for i, l := range c.loss {
		if l < share*c.loss[1] && l < c.loss[best] {
			best = i
		}
	}
	if best == 1 {
		return
	}
	*c = autoClock{turn: (c.turn + week + (best-1)*hour) % week}
	for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
		p.sum, p.count = 0, 0 // of parts that are no longer those of the bins to come
	}
}

func (c *autoClock) state(codec *codec, length int) {
	codec.integer(&c.turn, 0, 7*length-1)
	codec.integer(&c.judged, 0, length/clockWindow)
	for i := range c.loss {
		codec.single(&c.loss[i])
	}
}
