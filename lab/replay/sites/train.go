package sites

import (
	"fmt"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// Training keeps the states of trained models: systems with equal forecasting
// options learn a history once. A single goroutine at a time may use a Training.
type Training struct {
	states map[learnt][]byte
}

// learnt names a state: the model, and the place of its history.
type learnt struct {
	model               string
	horizon, day, place int
}

// Share has the sites share states of models through t with other systems of the
// same demand.
func (s *Sites) Share(t *Training) *Sites {
	s.training = t
	return s
}

// state returns the state of a site's model after the history of its place.
func (t *Training) state(cfg *core.Config, place int, history []predict.Bin) ([]byte, error) {
	key := learnt{cfg.Forecast, cfg.Horizon, cfg.Day, place}
	if state, found := t.states[key]; found {
		return state, nil
	}
	state, err := trained(cfg, history)
	if err != nil {
		return nil, err
	}
	if t.states == nil {
		t.states = make(map[learnt][]byte)
	}
	t.states[key] = state
	return state, nil
}

// train restarts all sites from their stored state, with forecasting models that
// have seen the history. Models with bins of another length stay untrained.
func (s *Sites) train() {
	s.started = true
	for i, at := range s.sites {
		if at.entity.Name != entityName {
			s.fail("site %s has no entity", at.id)
			return
		}
		if i >= len(s.history) || s.history[i] == nil || at.cfg.Bin != core.Tick(s.bin.Milliseconds()) {
			continue
		}
		if err := at.train(s.training, i, s.history[i]); err != nil {
			s.fail("training site %s: %w", at.id, err)
			return
		}
	}
}

func (at *site) train(t *Training, place int, history []predict.Bin) error {
	state, err := t.state(&at.cfg, place, history)
	if err != nil {
		return err
	}
	if at.busy || at.core.Pending() {
		return errBusy
	}
	at.forecast = stored.Forecast{
		Name: entityName, Generation: at.entity.Generation, Model: at.cfg.Forecast, Bin: at.cfg.Bin,
		Wall: at.now().Wall, State: state,
	}
	if err := at.start(at.stored()); err != nil {
		return err
	}
	at.settle()
	return nil
}

// trained returns the state of a site's model after a history.
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
