package fleet

import (
	"context"
	"time"

	"github.com/samya-db/samya/doctor"
)

const (
	// keepReport is how long a report is told again.
	keepReport = 5 * time.Second
	// betweenFirst is the time between the first two looks: rules about rates need two.
	betweenFirst = time.Second
	// restLooks is the pause in questions after which the looks before count no more.
	restLooks = 5 * time.Minute
	// roundTime bounds a round.
	roundTime = 15 * time.Second
)

// Rounds looks at a fleet for callers that ask again and again. However many ask, it looks once
// in five seconds, and nobody's end of patience ends a round that others wait for. The longer
// somebody asks, the further rules look back.
type Rounds struct {
	fleet *Fleet
	// turn holds a token while nobody looks.
	turn      chan struct{}
	diagnosis *doctor.Diagnosis
	last      time.Time
	report    doctor.Report
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
	if r.diagnosis != nil && time.Since(r.last) < keepReport {
		return r.report, r.last, nil
	}
	round, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTime)
	defer cancel()
	if err := r.round(round); err != nil {
		r.diagnosis = nil
		return doctor.Report{}, time.Time{}, err
	}
	return r.report, r.last, nil
}

// round looks once, or twice for a first report.
func (r *Rounds) round(ctx context.Context) error {
	if r.diagnosis == nil || time.Since(r.last) > restLooks {
		r.diagnosis = doctor.NewDiagnosis()
		if err := r.look(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(betweenFirst):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	var err error
	r.report, err = r.diagnosis.Report()
	return err
}

func (r *Rounds) look(ctx context.Context) error {
	look, err := r.fleet.Look(ctx, time.Now())
	if err != nil {
		return err
	}
	r.last = look.At
	return r.diagnosis.Add(look)
}
