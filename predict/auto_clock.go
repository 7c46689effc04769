package predict

import "math"

// autoClock notices that the clocks behind the demand have changed by an hour, as they do
// twice a year. The season then fits better an hour earlier or later. Over some eight
// hours it compares the season's mean absolute error with the errors an hour off. It
// compares them as they are, and scaled to how busy the hours were: a quiet day is not an
// early day. Where an hour off is clearly better by both, it turns the season: by an hour
// at most from the start. A turn caused by a holiday is taken back more easily: see
// takenBack. It keeps 72 bytes.
type autoClock struct {
	// turn is how many bins the season is ahead of the bins, within a week.
	turn int
	// judged counts bins since the last turn, up to a week.
	judged int
	// ahead is turn in hours: -1, 0 or 1. back is the change that would take the last
	// turn back, within a week of it, else 0.
	ahead, back int
	// loss holds the errors an hour earlier, as is, and an hour later. scaled holds the
	// errors with the season scaled by net over level, the mean demand over its forecast.
	loss, scaled, level [3]float32
	net                 float32
}

// clearly is how small a scaled error has to be, as a share of the error of the season as
// is. It is for the season of a day, which weekends mislead, and of a week.
var clearly = [...]float32{.36, .6}

const (
	// clearlyAsIs is the same share for errors that are not scaled. With .6 a holiday's
	// late morning is taken for a change of clocks.
	clearlyAsIs float32 = .45
	// takenBack is both shares for taking a turn back within a week.
	takenBack float32 = .8
	// clockDays is how many days the season has to be known.
	clockDays = 4
	// clockWindow divides a day: errors are means over 1/clockWindow of a day.
	clockWindow = 3
	// mostScale bounds how much busier or quieter than the season hours can be to tell.
	mostScale = 4.
	// asIs is the place of the season as it is.
	asIs = 1
)

// at returns the place of a bin in the season.
func (s *autoSeason) at(bin int) int { return bin - s.start + s.clock.turn }

// hourBins returns the length of an hour in bins, 0 if below one bin.
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
	if c.judged = min(c.judged+1, week); c.judged == week {
		c.back = 0
	}
	fresh := 1 / float64(min(c.judged, window))
	c.net += float32(fresh * (net - float64(c.net)))
	for i := range c.loss {
		expected := p.at(s.at(bin) + week + (i-asIs)*hour)
		c.level[i] += float32(fresh * (expected - float64(c.level[i])))
		c.loss[i] += float32(fresh * (math.Abs(net-expected) - float64(c.loss[i])))
		c.scaled[i] += float32(fresh * (math.Abs(net-expected*c.scale(i)) - float64(c.scaled[i])))
	}
	if by := c.change(share, window); by != 0 {
		back := -by
		if by == c.back {
			back = 0
		}
		*c = autoClock{turn: (c.turn + week + by*hour) % week, ahead: c.ahead + by, back: back}
		for _, p := range [...]*profile{&s.day, &s.hour, &s.week} {
			p.sum, p.count = 0, 0 // sums of parts that no longer belong to the next bins
		}
	}
}

// change returns by how many hours the clocks have changed: -1, 0 or 1.
func (c *autoClock) change(share float32, window int) int {
	if c.scale(asIs) == 0 {
		return 0
	}
	best, by := c.scaled[asIs], 0
	for i, l := range c.scaled {
		to, after, plain, scaled := i-asIs, window, clearlyAsIs, share
		if to == c.back {
			after, plain, scaled = window/2, takenBack, takenBack
		}
		if to != 0 && c.judged >= after && c.ahead+to >= -1 && c.ahead+to <= 1 &&
			c.scale(i) > 0 && l < scaled*c.scaled[asIs] && c.loss[i] < plain*c.loss[asIs] && l < best {
			best, by = l, to
		}
	}
	return by
}

// scale returns how much busier these hours were than the season. It returns 0 if that
// cannot be told, as they were by far too quiet or too busy.
func (c *autoClock) scale(i int) float64 {
	ratio := float64(c.net) / float64(c.level[i])
	if !(ratio >= 1/mostScale && ratio <= mostScale) { // false for NaN as well
		return 0
	}
	return ratio
}

func (c *autoClock) state(codec *codec, length int) {
	codec.integer(&c.turn, 0, 7*length-1)
	codec.integer(&c.judged, 0, 7*length)
	codec.integer(&c.ahead, -1, 1)
	codec.integer(&c.back, -1, 1)
	for _, fs := range [...]*[3]float32{&c.loss, &c.scaled, &c.level} {
		for i := range fs {
			codec.single(&fs[i])
		}
	}
	codec.single(&c.net)
}
