package replay

import (
	"fmt"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
)

// train starts all sites again on what they have stored, with forecasting models
// that have seen the history. Forecasts of bins of another length stay untrained.
func (r *run) train() {
	for i, s := range r.sites {
		history := r.o.Demand.History[i]
		if history == nil || s.cfg.Bin != core.Tick(Bin.Milliseconds()) {
			continue
		}
		state, err := trained(&s.cfg, history)
		if err != nil {
			r.fail("training site %s: %w", s.id, err)
			return
		}
		if s.busy || s.core.Pending() {
			r.fail("site %s has not stored all yet", s.id)
			return
		}
		s.core, err = core.New(s.cfg, core.Restored{
			Catalogue: s.catalogue, Changes: s.changes,
			Entities: []core.EntityRecord{s.entity}, Books: []core.BooksRecord{s.books},
			Forecasts: []core.ForecastRecord{{
				Name: entityName, Generation: s.entity.Generation, Model: s.cfg.Forecast, Bin: s.cfg.Bin,
				Wall: r.now.Milliseconds(), State: state,
			}},
		})
		if err != nil {
			r.fail("starting site %s again: %w", s.id, err)
			return
		}
		s.settle()
	}
}

// trained is the state of a site's model after a history.
func trained(cfg *core.Config, history []predict.Bin) ([]byte, error) {
	m, err := predict.ByName(cfg.Forecast, predict.Options{Horizon: cfg.Horizon, Day: max(0, cfg.Day)})
	if err != nil {
		return nil, err
	}
	for _, b := range history {
		m.Observe(b)
	}
	state, err := m.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("storing the model %s: %w", cfg.Forecast, err)
	}
	return state, nil
}
