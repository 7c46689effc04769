package core_test

import (
	"testing"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

func (r *rig) choose(site core.SiteID, model string) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.SetForecast{Call: call, Model: model})
	return r.answer(call)
}

func (r *rig) choice(site core.SiteID) answer.ForecastChoice {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.ReadForecast{Call: call})
	a := r.answer(call)
	r.wantCode(a, answer.OK)
	return a.Forecast()
}

func TestForecastChoice(t *testing.T) {
	r := alone(t, nil)
	auto := answer.ForecastChoice{Model: predict.Auto, Configured: predict.Auto}
	for _, unknown := range []string{"", "oracle", "AUTO"} {
		if a := r.choose("a", unknown); a.Code != answer.Invalid || a.Forecast() != auto {
			t.Errorf("%q: %+v", unknown, a)
		}
	}
	for _, model := range append(predict.Names(), predict.Auto) {
		if model == predict.LSTM {
			continue // is fitted for seconds
		}
		want := answer.ForecastChoice{Model: model, Configured: predict.Auto}
		if a := r.choose("a", model); a.Code != answer.OK || a.Forecast() != want || r.choice("a") != want {
			t.Errorf("%s: %+v, then %+v", model, a, r.choice("a"))
		}
		r.busy("a", "e", 30, 6000)
		if f := r.cores["a"].ForecastOf("e"); (f == predict.Forecast{}) != (model == predict.None) {
			t.Errorf("%s: %+v", model, f)
		}
	}
	// The stored state is of the model in force. The configured model takes it up after a
	// restart.
	r.choose("a", predict.RandomWalk)
	r.busy("a", "e", 30, 6000)
	stopped(r)
	if f := r.forecasts("a"); len(f) != 1 || f[0].Model != predict.RandomWalk {
		t.Errorf("stored are %+v", f)
	}
	r.restart("a")
	r.step("a", input.Wake{})
	if r.choice("a") != auto || r.cores["a"].ForecastOf("e").High == 0 {
		t.Errorf("after a restart %+v, %+v", r.choice("a"), r.cores["a"].ForecastOf("e"))
	}
	if n := r.count(event.ForecastDropped); n != 0 {
		t.Errorf("%d are dropped", n)
	}
}

// TestForecastChoiceOfTheGuarded: a site that serves nobody yet says so.
func TestForecastChoiceOfTheGuarded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Run = 1 })
	r.wantCode(r.choose("a", predict.None), answer.Unvouched)
	call := r.nextCall()
	r.step("a", &input.ReadForecast{Call: call})
	r.wantCode(r.answer(call), answer.Unvouched)
}
