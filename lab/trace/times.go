package trace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxSeconds bounds times against overflow of differences. Today's Unix
// milliseconds are above it.
const maxSeconds = 1 << 40

// stamp is a format of times.
type stamp int

const (
	noStamp stamp = iota
	unixSeconds
	isoWithZone
	isoWithoutZone
)

func (s stamp) String() string {
	return [...]string{"no time", "Unix seconds", "ISO 8601 with a zone", "ISO 8601 without a zone"}[s]
}

// clock reads the times of a file, all in the same format and in ascending order.
type clock struct {
	kind stamp
	// last is the newest time, text its text.
	last int64
	text string
}

// read returns a time in milliseconds since the Unix epoch.
func (c *clock) read(text string) (int64, error) {
	t, kind, err := readTime(text)
	switch {
	case err != nil:
		return 0, err
	case c.kind != noStamp && kind != c.kind:
		return 0, fmt.Errorf("time %q is %s, those before are %s", text, kind, c.kind)
	case c.kind != noStamp && t < c.last && kind == isoWithoutZone:
		return 0, fmt.Errorf("time %q is before %q, must be in order; clocks that change need a zone, such as +02:00", text, c.text)
	case c.kind != noStamp && t < c.last:
		return 0, fmt.Errorf("time %q is before %q, must be in order", text, c.text)
	}
	c.kind, c.last, c.text = kind, t, strings.Clone(text)
	return t, nil
}

// layouts are the layouts of ISO 8601 and RFC 3339. Each layout also reads
// fractions of a second.
var layouts = [...]struct {
	layout string
	kind   stamp
}{
	{"2006-01-02T15:04:05Z07:00", isoWithZone},
	{"2006-01-02T15:04:05Z0700", isoWithZone},
	{"2006-01-02T15:04:05Z07", isoWithZone},
	{"2006-01-02T15:04:05", isoWithoutZone},
	{"2006-01-02T15:04Z07:00", isoWithZone},
	{"2006-01-02T15:04", isoWithoutZone},
	{"2006-01-02", isoWithoutZone},
}

// readTime reads a time: Unix seconds, or a date and a time of ISO 8601 with T or a
// space in between. A time without a zone is UTC. The result is in milliseconds
// since the Unix epoch.
func readTime(text string) (int64, stamp, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		if !(math.Abs(seconds) <= maxSeconds) {
			return 0, noStamp, fmt.Errorf("time %q is beyond %d Unix seconds; milliseconds are not read", text, int64(maxSeconds))
		}
		return int64(math.Round(seconds * 1000)), unixSeconds, nil
	}
	iso := strings.Replace(strings.Replace(text, " UTC", "Z", 1), " ", "T", 1)
	for _, l := range layouts {
		if t, err := time.Parse(l.layout, iso); err == nil {
			return t.UnixMilli(), l.kind, nil
		}
	}
	return 0, noStamp, fmt.Errorf("time %q is neither Unix seconds nor ISO 8601 such as 2015-02-26T21:42:53Z", text)
}
