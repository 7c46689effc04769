package replay

import (
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

const (
	// WindowSpan is the length of a window of a Result.
	WindowSpan = 10 * time.Second
	// maxPoints bounds the sample of a Result.
	maxPoints = 5000
)

// telling is an answer as its client gets it, at a time since the start of the run.
type telling struct {
	at, latency time.Duration
	place       int32
	kind        virtual.Kind
	outcome     virtual.Outcome
	// plenty is set for an acquire that came while tokens were plenty.
	plenty bool
}

// told is all answers, in the order of their arrival.
type told struct{ all []telling }

func (t *told) add(a telling) { t.all = append(t.all, a) }

// Window is the answers within a WindowSpan.
type Window struct {
	// Places and Committed count acquires and reads granted and tokens released, by
	// place and in total. Refused and TimedOut are totals.
	Places                       []int `json:"places"`
	Committed, Refused, TimedOut int
	// Acquires, Releases and Reads are latencies, whatever the answer.
	Acquires, Releases, Reads Latency
}

// Point is an answer: its time, in seconds since the start of the run, and its
// latency in milliseconds.
type Point struct {
	At, Latency float64
	Place       virtual.Place
	Kind        virtual.Kind
	Outcome     virtual.Outcome
}

// windows returns the windows of a run.
func (t *told) windows(span time.Duration, places int) []Window {
	list := make([]Window, (span+WindowSpan-1)/WindowSpan)
	var acquires, releases, reads []time.Duration
	next := 0
	for i := range list {
		w := &list[i]
		w.Places = make([]int, places)
		acquires, releases, reads = acquires[:0], releases[:0], reads[:0]
		end := min(span, time.Duration(i+1)*WindowSpan)
		for ; next < len(t.all) && t.all[next].at < end; next++ {
			a := &t.all[next]
			switch a.outcome {
			case virtual.Granted:
				w.Committed++
				w.Places[a.place]++
			case virtual.Refused:
				w.Refused++
			case virtual.TimedOut:
				w.TimedOut++
			}
			switch a.kind {
			case virtual.Acquire:
				acquires = append(acquires, a.latency)
			case virtual.Release:
				releases = append(releases, a.latency)
			default:
				reads = append(reads, a.latency)
			}
		}
		w.Acquires, w.Releases, w.Reads = latencyOf(acquires), latencyOf(releases), latencyOf(reads)
	}
	return list
}

// sample returns every n-th answer, at most maxPoints.
func (t *told) sample() []Point {
	every := (len(t.all) + maxPoints - 1) / maxPoints
	var points []Point
	for i := 0; i < len(t.all); i += every {
		a := &t.all[i]
		points = append(points, Point{At: a.at.Seconds(), Latency: milliseconds(a.latency), Place: virtual.Place(a.place), Kind: a.kind, Outcome: a.outcome})
	}
	return points
}

// latencies returns the latencies of all answers, by kind and outcome, sorted.
func (t *told) latencies() (of [virtual.ReadExact + 1][virtual.TimedOut + 1][]time.Duration) {
	for i := range t.all {
		a := &t.all[i]
		of[a.kind][a.outcome] = append(of[a.kind][a.outcome], a.latency)
	}
	for k := range of {
		for o := range of[k] {
			slices.Sort(of[k][o])
		}
	}
	return of
}
