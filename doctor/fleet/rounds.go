package fleet

import (
	"context"
	"time"

	"github.com/samya-db/samya/doctor"
)

const (
	// keepReport is how long a report is told again.
	keepReport = 5 * time.Second
	// betweenLooks is the time between the two looks of a round: rules about rates need two.
	betweenLooks = time.Second
	// roundTime bounds a round.
	roundTime = 15 * time.Second
)

// Rounds looks at a fleet for callers that ask again and again. However many ask, a round is
// made once in five seconds, and nobody's end of patience ends a round that others wait for.
// Each round begins anew: a rule that looks back further is judged by the two looks, so
// that a fault shows at once.
type Rounds struct {
	fleet *Fleet
	// turn holds a token while nobody looks.
	turn   chan struct{}
	at     time.Time
	report doctor.Report
}

// NewRounds makes rounds over a fleet, which nobody else uses.
func NewRounds(f *Fleet) *Rounds {
	r := &Rounds{fleet: f, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// Report returns a report of at most five seconds ago, and the time of its last look.
func (r *Rounds) Report(ctx context.Context) (doctor.Report, time.Time, error) {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return doctor.Report{}, time.Time{}, context.Cause(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	if time.Since(r.at) < keepReport {
		return r.report, r.at, nil
	}
	round, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTime)
	defer cancel()
	report, at, err := r.round(round)
	if err == nil {
		r.report, r.at = report, at
	}
	return report, at, err
}

// round looks twice.
func (r *Rounds) round(ctx context.Context) (report doctor.Report, at time.Time, err error) {
	d := doctor.NewDiagnosis()
	for looks := range 2 {
		if looks > 0 {
			select {
			case <-time.After(betweenLooks):
			case <-ctx.Done():
				return report, at, context.Cause(ctx)
			}
		}
		at = time.Now()
		look, err := r.fleet.Look(ctx, at)
		if err == nil {
			err = d.Add(look)
		}
		if err != nil {
			return report, at, err
		}
	}
	report, err = d.Report()
	return report, at, err
}
