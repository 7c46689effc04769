package repartitioning

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// binLength is the length of the intervals of throughput. The paper takes a second
// in runs of minutes.
const binLength = 50 * time.Millisecond

// look is the state of a run at a time.
type look struct {
	at   time.Duration // since the first request
	done int64
	kvpart.Stats
}

// watch looks at a run at every tick until ctx ends. The caller stops the ticker.
func (d *driver) watch(ctx context.Context, tick <-chan time.Time, began time.Time, looks []look) []look {
	for {
		select {
		case <-ctx.Done():
			return looks
		case <-tick:
			looks = append(looks, d.look(began))
		}
	}
}

func (d *driver) look(began time.Time) look {
	return look{at: d.now().Sub(began), done: d.done.Load(), Stats: d.store.Stats()}
}

// bin is an interval of a run.
type bin struct {
	from, to time.Duration
	rate     float64 // requests a second
	multi    float64 // share of requests on several partitions; NaN for no requests
	spread   float64 // coefficient of variation of the queues' lengths at its end; NaN if all queues are empty
	applied  int64   // switches by its end
}

// bins returns the intervals between looks.
func bins(looks []look) []bin {
	var all []bin
	for i := 1; i < len(looks); i++ {
		a, b := &looks[i-1], &looks[i]
		seconds := (b.at - a.at).Seconds()
		if seconds <= 0 {
			continue
		}
		n := bin{from: a.at, to: b.at, rate: float64(b.done-a.done) / seconds, multi: math.NaN(), spread: variation(b.Queued), applied: b.Applied}
		if ran := b.Operations - a.Operations; ran > 0 {
			n.multi = float64(b.Multi-a.Multi) / float64(ran)
		}
		all = append(all, n)
	}
	return all
}

// span is a stretch of a run.
type span struct{ from, to time.Duration }

// cuts returns the times of cuts, to within a bin: a look tells that a cut has
// ended and how long it took.
func cuts(looks []look) []span {
	var all []span
	for i := 1; i < len(looks); i++ {
		a, b := &looks[i-1], &looks[i]
		if b.Computed > a.Computed {
			from := max(b.at-b.LastCutTime-(b.at-a.at)/2, 0)
			if n := len(all); n > 0 && from <= all[n-1].to {
				all[n-1].to = b.at
				continue
			}
			all = append(all, span{from, b.at})
		}
	}
	return all
}

// variation returns the coefficient of variation; NaN if the mean is 0.
func variation(lengths []int) float64 {
	sum := 0
	for _, n := range lengths {
		sum += n
	}
	if sum == 0 {
		return math.NaN()
	}
	mean := float64(sum) / float64(len(lengths))
	squares := 0.0
	for _, n := range lengths {
		squares += (float64(n) - mean) * (float64(n) - mean)
	}
	return math.Sqrt(squares/float64(len(lengths))) / mean
}

// median returns the median of the numbers without NaN; NaN for no numbers.
func median(of []float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(of), math.IsNaN)
	slices.Sort(sorted)
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// dip returns the largest fall of throughput within a stretch of a run, as a share
// of the median of the whole run. It is the median over all stretches, so that a
// single disturbed stretch counts little. NaN for no stretches.
func dip(all []bin, of []span) float64 {
	var rates, worst []float64
	for _, b := range all {
		rates = append(rates, b.rate)
	}
	usual := median(rates)
	for _, s := range of {
		least := math.NaN()
		for _, b := range all {
			if b.from < s.to && b.to > s.from && !(b.rate >= least) {
				least = b.rate
			}
		}
		worst = append(worst, 1-least/usual)
	}
	return median(worst)
}

// loss returns the share by which throughput is lower within stretches of a run
// than outside. NaN for no stretches, or nothing outside.
func loss(all []bin, of []span) float64 {
	var in, out, inTime, outTime float64
	for _, b := range all {
		within := false
		for _, s := range of {
			within = within || b.from < s.to && b.to > s.from
		}
		seconds := (b.to - b.from).Seconds()
		if within {
			in, inTime = in+b.rate*seconds, inTime+seconds
		} else {
			out, outTime = out+b.rate*seconds, outTime+seconds
		}
	}
	if inTime == 0 || outTime == 0 || out == 0 {
		return math.NaN()
	}
	return 1 - (in/inTime)/(out/outTime)
}

// between returns stretches as long as the cuts, each in the middle of the gap
// between two cuts if it fits: the control of dip.
func between(of []span) []span {
	var all []span
	for i := 1; i < len(of); i++ {
		length := of[i].to - of[i].from
		gap := of[i].from - of[i-1].to
		if gap > length+2*binLength {
			from := of[i-1].to + (gap-length)/2
			all = append(all, span{from, from + length})
		}
	}
	return all
}
