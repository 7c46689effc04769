package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// busy has a site serve acquires and their releases in turn, for d.
func (r *rig) busy(site core.SiteID, entity string, tokens core.Tokens, d core.Tick) {
	r.t.Helper()
	for end := r.now.Tick + d; r.now.Tick < end; r.advance(500) {
		n := r.nextCall()
		r.wantCode(r.acquire(site, entity, tokens, id("b", n)), answer.OK)
		r.wantCode(r.release(site, entity, tokens, id("d", n)), answer.OK)
	}
}

func (r *rig) forecasts(site core.SiteID) []stored.Forecast {
	r.t.Helper()
	restored, err := r.disks[site].Load()
	if err != nil {
		r.t.Fatal(err)
	}
	return restored.Forecasts
}

// alone is a rig of one site with an entity that has had ten bins of demand, of 30 tokens
// at most.
func alone(t *testing.T, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 1, tweak)
	r.create("e", 1000)
	r.busy("a", "e", 30, 50_000)
	return r
}

func stopped(r *rig) {
	r.step("a", input.Stop{})
	for r.cores["a"].Pending() {
		r.drain("a")
	}
}

// TestForecastsAreStored: within a minute and some seconds of demand, also if no further
// request comes, and at most once a minute.
func TestForecastsAreStored(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 1000)
	r.busy("a", "e", 30, 6000)
	if n := len(r.forecasts("a")); n != 0 {
		t.Fatalf("%d states are stored at once", n)
	}
	r.advance(70_000)
	first := r.forecasts("a")
	if len(first) != 1 || first[0].Name != "e" || first[0].Model != predict.Auto || first[0].Bin != 5000 || len(first[0].State) == 0 {
		t.Fatalf("stored are %+v", first)
	}
	if end := r.now.Wall - 15_000; first[0].Wall < end || first[0].Wall > r.now.Wall {
		t.Errorf("the last bin ends at %d, it is %d", first[0].Wall, r.now.Wall)
	}
	writes, last := 0, first[0].Wall
	for range 600 {
		r.busy("a", "e", 30, 500)
		if now := r.forecasts("a")[0].Wall; now != last {
			writes, last = writes+1, now
		}
	}
	if writes < 4 || writes > 5 {
		t.Errorf("%d times in five minutes", writes)
	}
}

// TestForecastSurvives a stop and a kill: the model is the stored model, with the bins
// since then missing.
func TestForecastSurvives(t *testing.T) {
	for name, stop := range map[string]func(*rig){
		"a stop": stopped, "a kill": func(r *rig) { r.busy("a", "e", 30, 70_000) },
	} {
		t.Run(name, func(t *testing.T) {
			r := alone(t, nil)
			stop(r)
			was := r.forecasts("a")
			if len(was) != 1 {
				t.Fatalf("stored are %d states", len(was))
			}
			want, err := predict.ByName(predict.Auto, predict.Options{Horizon: 6, Day: 17280})
			if err != nil {
				t.Fatal(err)
			}
			if err := want.UnmarshalBinary(was[0].State); err != nil {
				t.Fatal(err)
			}
			r.now.Tick, r.now.Wall = r.now.Tick+20_000, r.now.Wall+20_000
			r.restart("a")
			r.step("a", input.Wake{})
			gap := r.now.Wall - int64(r.now.Tick%5000) - was[0].Wall
			for range (gap + 2500) / 5000 {
				want.Observe(predict.Missing)
			}
			got := r.cores["a"].ForecastOf("e")
			if got != want.Forecast().Clamp(1000) || got.High < 30 || gap < 20_000 {
				t.Errorf("after %d ms: %+v, want %+v", gap, got, want.Forecast())
			}
			if n := r.count(event.ForecastDropped); n != 0 {
				t.Errorf("%d are dropped", n)
			}
		})
	}
}

// TestGaps: a gap does not count as time without demand. A clock that was set back counts
// as no gap. After a week the site learns anew.
func TestGaps(t *testing.T) {
	const week = 7 * 24 * 60 * 60 * 1000
	for name, tc := range map[string]struct {
		gap  int64
		kept bool
	}{
		"a day": {week / 7, true}, "set back": {-week, true}, "a week": {week - 120_000, true}, "more": {week + 60_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := alone(t, nil)
			stopped(r)
			before := r.cores["a"].ForecastOf("e")
			r.now.Wall += tc.gap
			r.restart("a")
			r.step("a", input.Wake{})
			after := r.cores["a"].ForecastOf("e")
			if tc.kept && (after.High < before.High/2 || after.High == 0) || !tc.kept && after != (predict.Forecast{}) {
				t.Errorf("%+v before, %+v after", before, after)
			}
			if n := r.count(event.ForecastDropped); n != 0 {
				t.Errorf("%d are dropped", n)
			}
			r.busy("a", "e", 30, 6000)
			if f := r.cores["a"].ForecastOf("e"); f.High == 0 {
				t.Errorf("then %+v", f)
			}
		})
	}
}

// TestUnfitForecasts: no stored state keeps a site from starting. The site takes up only
// a state of the present entity, generation and bins.
func TestUnfitForecasts(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil   func(*stored.Forecast)
		dropped int
		kept    bool
	}{
		"untouched":          {func(*stored.Forecast) {}, 0, true},
		"another model":      {func(f *stored.Forecast) { f.Model, f.State = walk(50) }, 0, true},
		"damaged":            {func(f *stored.Forecast) { f.State[len(f.State)/2] ^= 1 }, 1, false},
		"unreadable":         {func(f *stored.Forecast) { *f = stored.Forecast{Name: "e"} }, 1, false},
		"an unknown model":   {func(f *stored.Forecast) { f.Model = "oracle" }, 1, false},
		"state of another":   {func(f *stored.Forecast) { f.Model = predict.MeanRate }, 1, false},
		"another generation": {func(f *stored.Forecast) { f.Generation++ }, 0, false},
		"another entity":     {func(f *stored.Forecast) { f.Name = "f" }, 0, false},
		"other bins":         {func(f *stored.Forecast) { f.Bin = 1000 }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := alone(t, nil)
			stopped(r)
			f := r.forecasts("a")[0]
			f.State = slices.Clone(f.State)
			tc.spoil(&f)
			if err := r.disks["a"].Commit(&stored.Records{Forecasts: []stored.Forecast{f}}); err != nil {
				t.Fatal(err)
			}
			if f.Name != "e" {
				if err := r.disks["a"].Commit(&stored.Records{Forecasts: []stored.Forecast{{Name: "e", Generation: 99, State: []byte{1}}}}); err != nil {
					t.Fatal(err)
				}
			}
			r.restart("a")
			r.step("a", input.Wake{})
			got := r.cores["a"].ForecastOf("e")
			r.drain("a")
			if n := r.count(event.ForecastDropped); (got.High > 0) != tc.kept || n != tc.dropped {
				t.Errorf("%+v, %d dropped", got, n)
			}
			r.busy("a", "e", 30, 6000)
		})
	}
}

// walk is the state of a random walk that has seen a bin of tokens.
func walk(tokens float64) (string, []byte) {
	m, err := predict.ByName(predict.RandomWalk, predict.Options{Horizon: 6, Day: 17280})
	if err != nil {
		panic(err)
	}
	m.Observe(predict.Bin{Net: tokens, Peak: tokens})
	state, err := m.MarshalBinary()
	if err != nil {
		panic(err)
	}
	return predict.RandomWalk, state
}

// TestForecastsOfTheDeleted: forecasts go with the entity, and a new entity of the same
// name begins anew.
func TestForecastsOfTheDeleted(t *testing.T) {
	r := alone(t, nil)
	r.wantCode(r.change("a", input.DeleteEntity, "e", 0, "gone"), answer.OK)
	r.advance(100_000)
	if f := r.forecasts("a"); len(f) != 0 {
		t.Errorf("stored are %+v", f)
	}
	r.wantCode(r.change("a", input.CreateEntity, "e", 1000, "again"), answer.OK)
	if f := r.cores["a"].ForecastOf("e"); f != (predict.Forecast{}) {
		t.Errorf("a new entity expects %+v", f)
	}
	r.busy("a", "e", 30, 1000)
	stopped(r)
}

// TestIdleModels: without demand for long, a model is on disk alone or parked. The site
// takes it up again when there is demand.
func TestIdleModels(t *testing.T) {
	for name, room := range map[string]int{"room": 1 << 20, "no room": 1} {
		t.Run(name, func(t *testing.T) {
			r := alone(t, func(c *core.Config) { c.ForecastIdle, c.MaxParked = 200_000, room })
			before := r.cores["a"].ForecastOf("e")
			r.advance(180_000)
			if !r.cores["a"].ModelInMemory("e") {
				t.Fatal("the model is gone too early")
			}
			r.advance(60_000)
			if r.cores["a"].ModelInMemory("e") || len(r.forecasts("a")) != 1 {
				t.Fatalf("in memory: %v, stored: %d", r.cores["a"].ModelInMemory("e"), len(r.forecasts("a")))
			}
			if n := r.cores["a"].ParkedBytes(); n > room || room > 1 && n == 0 {
				t.Errorf("%d bytes are parked", n)
			}
			if f := r.cores["a"].ForecastOf("e"); (f.High > before.High/4) != (room > 1) {
				t.Errorf("then %+v, was %+v", f, before)
			}
			r.busy("a", "e", 30, 6000) // a bin has to close before there is a new model
			if n := r.cores["a"].ParkedBytes(); n != 0 || !r.cores["a"].ModelInMemory("e") {
				t.Errorf("%d bytes are parked of an entity with demand", n)
			}
		})
	}
}

// TestManyForecasts: a few states go with a transaction that requests wait for, and the
// others with transactions of their own.
func TestManyForecasts(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.MaxParked = 20_000 })
	const entities = 200
	for i := range entities {
		r.create(fmt.Sprintf("e%03d", i), 100)
	}
	for round := range 2 {
		for i := range entities {
			r.wantCode(r.acquire("a", fmt.Sprintf("e%03d", i), 5, id("b", entities*round+i)), answer.OK)
		}
		r.advance(5000)
	}
	c := r.cores["a"]
	r.now.Tick, r.now.Wall = r.now.Tick+63_000, r.now.Wall+63_000
	var out core.Effects
	c.Step(r.now, &input.Acquire{Call: 0, Entity: "e000", Tokens: 1, Request: key("x")})
	c.Drain(&out)
	if n := len(out.Records.Forecasts); n == 0 || n > 4 {
		t.Errorf("%d states go with a request", n)
	}
	c.Step(r.now, input.Stop{})
	stored := 0
	for c.Pending() {
		out.Reset()
		c.Drain(&out)
		if n := len(out.Records.Forecasts); n > 64 {
			t.Fatalf("%d states in one transaction", n)
		}
		stored += len(out.Records.Forecasts)
		if err := r.disks["a"].Commit(&out.Records); err != nil {
			t.Fatal(err)
		}
	}
	if stored < entities-4 {
		t.Errorf("%d of %d are stored at a stop", stored, entities)
	}
	r.restart("a")
	if n := r.cores["a"].ParkedBytes(); n < 15_000 || n > 20_000 {
		t.Errorf("%d bytes are parked after a restart, of at most 20,000", n)
	}
}
