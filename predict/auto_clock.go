package predict

import "math"

// autoClock notices that the clocks of those who make the demand have changed by an
// hour, as they do twice a year: the season then fits better an hour earlier or
// later. Over some eight hours it compares the season's mean absolute error with those
// an hour off, once as they are and once scaled to how busy these hours were, so
// that a quiet day is not an early one. Where an hour off is clearly better by both
// it turns the season. It keeps 60 bytes.
type autoClock struct {
	// turn is how many bins the season is ahead of the bins, within a week.
	turn int
	// judged counts bins since the last turn, up to a third of a day.
	judged int
	// loss are the errors an hour earlier, as is, and an hour later; scaled those
	// scaled by the mean demand over level, what was expected of it.
	loss, scaled, level [3]float32
	net                 float32
}

// clearly is how small a scaled error has to be, as a share of that of the season as
// is: of the season of a day, which weekends mislead, and of that of a week.
var clearly = [...]float32{.36, .6}

const (
	// clearlyAsIs is the same of the errors that are not scaled. With .6 a holiday's
	// late morning is taken for a change of clocks.
	clearlyAsIs = .45
	// clockDays is how many days the season has to be known.
	clockDays = 4
	// clockWindow is the part of a day that errors are a mean over.
	clockWindow = 3
	// mostScale bounds how much busier or quieter than the season hours can be to tell.
	mostScale = 4.
	// asIs is the place of the season as it is.
	asIs = 1
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

// observeClock takes in a bin before the season has learnt it, and turns the season if
// the clocks have changed.
func (s *autoSeason) observeClock(net float64, bin int) {
	hour := s.hourBins()
	if hour == 0 || !s.ready(bin, clockDays) {
		return
	}
	p, share := &s.day, clearly[0]
	if s.ready(bin, 14) {
		p, share = &s.week, clearly[1]
	}
	c, week, window := &s.clock, 7*s.length, s.length/clockWindow
	c.judged = min(c.judged+1, window)
	fresh := 1 / float64(c.judged)
	c.net += float32(fresh * (net - float64(c.net)))
	for i := range c.loss {
		expected := p.at(s.at(bin) + week + (i-asIs)*hour)
		c.level[i] += float32(fresh * (expected - float64(c.level[i])))
		c.loss[i] += float32(fresh * (math.Abs(net-expected) - float64(c.loss[i])))
		c.scaled[i] += float32(fresh * (math.Abs(net-expected*c.scale(i)) - float64(c.scaled[i])))
	}
	if c.judged < window || c.scale(asIs) == 0 {
		return
	}
	best := asIs
	for i, l := range c.scaled {
		if c.scale(i) > 0 && l < share*c.scaled[asIs] && c.loss[i] < clearlyAsIs*c.loss[asIs] && l < c.scaled[best] {
			best = i
		}
	}
	if best == asIs {
		return
	}
	*c = autoClock{turn: (c.turn + week + (best-asIs)*hour) % week}
	for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
		p.sum, p.count = 0, 0 // of parts that are no longer those of the bins to come
	}
}

// scale is how much busier these hours were than the season: 0 if it cannot be told, as
// they were by far too quiet or too busy.
func (c *autoClock) scale(i int) float64 {
	ratio := float64(c.net) / float64(c.level[i])
	if !(ratio >= 1/mostScale && ratio <= mostScale) { // nor if it is no number
		return 0
	}
	return ratio
}

func (c *autoClock) state(codec *codec, length int) {
	codec.integer(&c.turn, 0, 7*length-1)
	codec.integer(&c.judged, 0, length/clockWindow)
	for _, fs := range [...]*[3]float32{&c.loss, &c.scaled, &c.level} {
		for i := range fs {
			codec.single(&fs[i])
		}
	}
	codec.single(&c.net)
}
