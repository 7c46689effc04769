package rates

import (
	"math"
	"time"
)

// dayLength is the length of a day of 24 hours in milliseconds.
const dayLength = 86_400_000

// Calendar finds windows. It remembers the last, so that most questions cost a comparison.
// Windows are numbered from 1, the window of the Unix epoch; all before are 0. A number
// stands for dates: whatever a site knows of a time zone, a date has the same number at all
// sites.
type Calendar struct {
	count  int64
	length int64 // in milliseconds; 0 for days and months in a zone
	months bool
	zone   *time.Location
	number int64
	// begins and ends bound the window found last, in milliseconds since the Unix epoch.
	begins, ends int64
}

// NewCalendar returns the calendar of valid terms.
func NewCalendar(t *Terms) *Calendar {
	c := calendarOf(t)
	return &c
}

func calendarOf(t *Terms) Calendar {
	c := Calendar{count: int64(t.Count), zone: time.UTC}
	switch {
	case t.Unit == Month:
		c.months = true
	case t.Unit == Day && t.Zone != "":
	default:
		c.length = t.micros() / 1000
	}
	if t.Zone != "" {
		// The zone is known: Validate has found it.
		if zone, err := time.LoadLocation(t.Zone); err == nil {
			c.zone = zone
		}
	}
	return c
}

// At is the number of the window at a time in milliseconds since the Unix epoch, and the
// time at which the window ends.
func (c *Calendar) At(wall int64) (number, ends int64) {
	if wall < c.begins || wall >= c.ends {
		c.number = c.numberAt(wall)
		c.begins, c.ends = c.first(c.number), c.first(c.number+1)
		if wall < c.begins || wall >= c.ends {
			// Where a zone sets its clocks back over midnight, a date comes twice.
			c.begins, c.ends = wall, c.search(c.number+1, wall, wall+2*dayLength)
		}
	}
	return c.number, c.ends
}

// Around is the length of the period at a time, and the time until all tokens have come
// back at the latest: the end of a window, or a period later.
func (t *Terms) Around(at time.Time) (period, rest time.Duration) {
	if t.Kind != Window {
		period = time.Duration(t.micros()) * time.Microsecond
		return period, period
	}
	c := calendarOf(t)
	_, ends := c.At(at.UnixMilli())
	return time.Duration(c.ends-c.begins) * time.Millisecond, time.UnixMilli(ends).Sub(at)
}

// numberAt is the number of the window at a time.
func (c *Calendar) numberAt(wall int64) int64 {
	if c.length > 0 {
		return numbered(wall, c.length)
	}
	y, m, d := time.UnixMilli(wall).In(c.zone).Date()
	if c.months {
		return numbered(int64(y-1970)*12+int64(m)-1, c.count)
	}
	return numbered(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix(), 86_400*c.count)
}

// first is the first time of a window from 1 on, in milliseconds since the Unix epoch.
func (c *Calendar) first(number int64) int64 {
	if number < 1 {
		return math.MinInt64
	}
	number--
	if c.length > 0 {
		return number * c.length
	}
	year, month, day := 1970, 1, 1
	if c.months {
		month += int(number * c.count)
	} else {
		day += int(number * c.count)
	}
	at := time.Date(year, time.Month(month), day, 0, 0, 0, 0, c.zone).UnixMilli()
	number++
	if c.numberAt(at) >= number && c.numberAt(at-1) < number {
		return at
	}
	// Midnight does not exist on that day, or exists twice.
	return c.search(number, at-dayLength, at+dayLength)
}

// search finds where a window begins: after before, and not after after.
func (c *Calendar) search(number, before, after int64) int64 {
	for after-before > 1 {
		if middle := before + (after-before)/2; c.numberAt(middle) < number {
			before = middle
		} else {
			after = middle
		}
	}
	return after
}

// numbered is the number of the part of that length that n lies in, from 1; 0 for n below
// 0.
func numbered(n, length int64) int64 {
	if n < 0 {
		return 0
	}
	return n/length + 1
}
