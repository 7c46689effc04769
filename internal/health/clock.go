package health

import (
	"strconv"
	"time"
)

// ClockHeader is the metadata in the answer to a health check that tells the time of the
// server's clock, in milliseconds since the Unix epoch.
const ClockHeader = "samya-clock-ms"

// ClockTold returns the value of ClockHeader.
func ClockTold(now time.Time) string { return strconv.FormatInt(now.UnixMilli(), 10) }

// Skew returns by how much the clock of a server is ahead of the caller's, negative if
// behind. The check began at began by the caller's clock and took rtt; the result is
// exact to half of rtt. known is false for a server that did not tell its time.
func Skew(told []string, began time.Time, rtt time.Duration) (skew time.Duration, known bool) {
	if len(told) != 1 {
		return 0, false
	}
	ms, err := strconv.ParseInt(told[0], 10, 64)
	if err != nil || ms < 0 || ms > 1<<45 {
		return 0, false
	}
	return time.UnixMilli(ms).Sub(began.Add(rtt / 2).Round(0)), true
}
