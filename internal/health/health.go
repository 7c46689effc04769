// Package health is a caller's knowledge of a server: whether it answers, its round trip,
// and until when it wants to be left alone. It is plain data: it neither probes nor reads
// a clock, and is not safe for concurrent use.
package health

import "time"

// Reach is whether a server answers.
type Reach uint8

// The values of Reach.
const (
	// Unproven: the server was not heard of yet.
	Unproven Reach = iota
	Up
	Down
)

const (
	// rttWeight is the weight of a new measurement in the moving average of a
	// server's round trip.
	rttWeight = 0.3
	// SoftMisses is how many probes in a row may miss their time before a server counts
	// as down. A broken connection counts at once.
	SoftMisses = 2
	// A server that answered OVERLOADED is passed over for as long as it asks for, within
	// these bounds; for overloadUnsaid if it does not say.
	minOverload, maxOverload = 50 * time.Millisecond, 5 * time.Second
	overloadUnsaid           = time.Second
	// SameDistance is the difference of round trips below which servers count as equally
	// near, so that noise does not make the choice.
	SameDistance = 5 * time.Millisecond
)

// Health is the state of a server. Its zero value is unproven.
type Health struct {
	Reach           Reach
	RTT             time.Duration // moving average; zero: not measured
	OverloadedUntil time.Time
	// Idle: the server is down since it answers probes by saying that it does not serve.
	Idle   bool
	misses int // probes in a row that were not answered in time
}

// Answered records a probe's round trip.
func (h *Health) Answered(rtt time.Duration) {
	h.Reach, h.Idle, h.misses = Up, false, 0
	if rtt = max(rtt, 1); h.RTT == 0 {
		h.RTT = rtt
		return
	}
	h.RTT += time.Duration(rttWeight * float64(rtt-h.RTT))
}

// Late records a probe that was not answered in time.
func (h *Health) Late() {
	if h.misses++; h.misses >= SoftMisses {
		h.Broken()
	}
}

// Broken records a connection that broke or cannot be made. Round trips are then measured
// anew.
func (h *Health) Broken() { *h = Health{Reach: Down} }

// NotServing records a probe answered by a server that does not serve.
func (h *Health) NotServing() { *h = Health{Reach: Down, Idle: true} }

// Refused records an answer OVERLOADED that asks to stay away for retryAfter; 0 or less
// if it does not say.
func (h *Health) Refused(now time.Time, retryAfter time.Duration) {
	if retryAfter <= 0 {
		retryAfter = overloadUnsaid
	}
	h.OverloadedUntil = now.Add(min(max(retryAfter, minOverload), maxOverload))
}

// Overloaded reports whether the server wants to be left alone.
func (h *Health) Overloaded(now time.Time) bool { return now.Before(h.OverloadedUntil) }
