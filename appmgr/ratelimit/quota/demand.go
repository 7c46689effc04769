package quota

import "time"

// headroom is by how much a share exceeds the demand foreseen: demand varies within a period,
// and a bucket fills evenly.
const headroom = 1.5

// demand foresees the requests of a bucket.
type demand struct {
	// rate is an exponentially weighted average, and last the last rate, in requests a second.
	rate, last float64
	// pending are requests since a time, too short a while ago for a rate.
	pending int64
	since   time.Duration
	known   bool
}

// note takes up a report.
func (d *demand) note(requests int64, now time.Duration) {
	d.pending += requests
	if d.since == 0 {
		d.since = now
		return
	}
	elapsed := now - d.since
	if elapsed < time.Second {
		return
	}
	d.last = float64(d.pending) / elapsed.Seconds()
	if d.known {
		d.rate = (d.rate + d.last) / 2
	} else {
		d.rate, d.known = d.last, true
	}
	d.pending, d.since = 0, now
}

// wants is the share to lease, 1 to limit. Nothing is known of a new bucket: it gets a small
// part.
func (d *demand) wants(period time.Duration, limit int64) int64 {
	if !d.known {
		return min(limit, max(1, limit/16, d.pending))
	}
	want := max(d.rate, d.last) * period.Seconds() * headroom
	if want >= float64(limit) {
		return limit
	}
	return max(1, int64(want+0.999))
}
