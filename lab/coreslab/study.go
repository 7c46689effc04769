package coreslab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Study is a table of the model, with its costs, and how it compares with real sites.
type Study struct {
	Calibration
	// Entities, Callers and Cores are the numbers of the rows.
	Entities, Callers, Cores []int
	Connections              int
	// Bin is the samya program to compare with; empty: no comparison. Checked are the cores
	// of a comparison, Times how often it measures, and Time how long.
	Bin     string
	Checked []int
	Times   int
	Time    time.Duration
	Seed    uint64
	// Tell is told of each step.
	Tell func(string)
}

// Report is the result of a study.
type Report struct {
	Costs []*Costs `json:"costs"`
	Rows  []Row    `json:"rows"`
	// Checks compare the model with real sites.
	Checks []Check `json:"checks"`
}

// Row is a row of the model.
type Row struct {
	Entities int `json:"entities"`
	Result
	// Times is the rate over the rate of the core alone on as many cores.
	Times float64 `json:"times_alone"`
}

// Check is a real site beside the model, with clients on the same cores: the fastest of
// several measurements, as other programs make a site slower alone.
type Check struct {
	Entities    int `json:"entities"`
	Partitions  int `json:"partitions"`
	Real, Model Result
	// Error is the rate of the model over the real rate, less 1.
	Error float64 `json:"error"`
}

const (
	// modelWarmup and modelTime are virtual time, checkWarmup is real time.
	modelWarmup, modelTime = 40 * time.Millisecond, 160 * time.Millisecond
	checkWarmup            = 500 * time.Millisecond
	// checkTime is virtual time.
	checkTime = time.Second
	// checkSyncs is the number of syncs measured before each real site.
	checkSyncs = 100
	// syncLooks is how often the disk is measured for the rows.
	syncLooks = 6
)

// Run measures the costs, plays all rows, and compares with real sites.
func (o *Study) Run(ctx context.Context) (*Report, error) {
	r := new(Report)
	for _, entities := range o.Entities {
		o.Tell(fmt.Sprintf("costs with %d entities", entities))
		at := o.Calibration
		at.Entities = entities
		c, err := Calibrate(ctx, at)
		if err != nil {
			return nil, err
		}
		r.Costs = append(r.Costs, c)
	}
	if err := o.calmest(r.Costs); err != nil {
		return nil, err
	}
	o.Tell("the model")
	for _, c := range r.Costs {
		if err := o.rows(ctx, r, c); err != nil {
			return nil, err
		}
	}
	if o.Bin == "" {
		return r, nil
	}
	for _, c := range r.Costs {
		for _, cores := range o.Checked {
			for _, partitions := range []int{1, 2} {
				o.Tell(fmt.Sprintf("a real site with %d entities, %d cores, %d partitions", c.Entities, cores, partitions))
				if err := o.check(ctx, r, c, cores, partitions); err != nil {
					return nil, err
				}
			}
		}
	}
	return r, nil
}

// calmest has all costs have the times of syncs of the calmest measurement: other programs make
// the disk slower alone.
func (o *Study) calmest(all []*Costs) error {
	mean := func(times []float64) float64 {
		sum := 0.
		for _, t := range times {
			sum += t
		}
		return sum / float64(len(times))
	}
	best := *all[0]
	for range syncLooks {
		alone, pairs, err := Syncs(o.Dir, o.Rounds)
		if err != nil {
			return err
		}
		if mean(alone) < mean(best.Syncs) {
			best.Syncs, best.Pairs = alone, pairs
		}
	}
	for _, c := range all {
		if mean(c.Syncs) < mean(best.Syncs) {
			best.Syncs, best.Pairs = c.Syncs, c.Pairs
		}
	}
	for _, c := range all {
		c.Syncs, c.Pairs = best.Syncs, best.Pairs
	}
	return nil
}

// rows plays all designs.
func (o *Study) rows(ctx context.Context, r *Report, c *Costs) error {
	for _, callers := range o.Callers {
		for _, cores := range o.Cores {
			alone := 0.
			for _, plan := range plans {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				got, err := Run(Options{
					Design: plan.of, Cores: cores, Callers: callers, Connections: o.Connections, Forgets: true,
					Warmup: modelWarmup, Time: modelTime, Seed: o.Seed, Costs: c,
				})
				if err != nil {
					return err
				}
				if alone == 0 {
					alone = max(1, got.Rate)
				}
				r.Rows = append(r.Rows, Row{Entities: c.Entities, Result: *got, Times: got.Rate / alone})
			}
		}
	}
	return nil
}

// check compares the model with a real site.
func (o *Study) check(ctx context.Context, r *Report, c *Costs, cores, partitions int) error {
	s := &Site{Bin: o.Bin, Dir: o.Dir, Cores: cores, Partitions: partitions, Entities: c.Entities, Warmup: checkWarmup, Time: o.Time}
	all := make([][]Result, len(o.Callers))
	now := *c
	for range o.Times {
		// The disk may be slower than before, as others use it.
		alone, pairs, err := Syncs(o.Dir, checkSyncs)
		if err != nil {
			return err
		}
		now.Syncs, now.Pairs = alone, pairs
		got, err := s.Measure(ctx, o.Callers, o.Connections)
		if err != nil {
			return fmt.Errorf("measure a real site: %w", err)
		}
		for i := range got {
			all[i] = append(all[i], got[i])
		}
	}
	design := Design(0)
	if partitions > 1 {
		design = product
	}
	for i, callers := range o.Callers {
		fastest := slices.MaxFunc(all[i], func(a, b Result) int { return cmp.Compare(a.Rate, b.Rate) })
		model, err := Run(Options{
			Design: design, Shards: partitions, Cores: cores, Callers: callers, Connections: o.Connections, Local: true, Taken: fastest.Taken,
			Warmup: checkWarmup, Time: checkTime, Seed: o.Seed, Costs: &now,
		})
		if err != nil {
			return err
		}
		k := Check{Entities: c.Entities, Partitions: partitions, Real: fastest, Model: *model}
		k.Error = model.Rate/max(1, k.Real.Rate) - 1
		r.Checks = append(r.Checks, k)
	}
	return nil
}
