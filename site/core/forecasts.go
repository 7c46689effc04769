package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/stored"
)

// forecasting counts the demand for each entity, and forecasts it.
type forecasting struct {
	*common
	*peering
	forecasts forecasts
}

const (
	// storeEvery is the time in milliseconds from the close of a bin to storing a state
	// that counts it: once in that time for an entity with traffic.
	storeEvery Tick = 60_000
	// storedAtOnce bounds the states that a transaction stores, storedBeside the states
	// that it stores if requests wait for it.
	storedAtOnce, storedBeside = 64, 4
	// forecastPatience is the time in milliseconds for which a state waits for a
	// transaction to go with.
	forecastPatience Tick = 5000
	// longestGap is the longest gap, in milliseconds, after which a model goes on.
	longestGap = 7 * 24 * 60 * 60 * 1000
)

// forecasts holds the choice of the model for all entities, and keeps the models durable
// and their memory bounded. The models are with the entities.
type forecasts struct {
	// name is the chosen model, choice the number of choices so far.
	name   string
	choice uint64
	// parked are stored states of entities without a model in memory; bytes is their
	// size.
	parked map[string]stored.Forecast
	bytes  int
	// unstored are the entities with a state to be stored, idle the entities to be
	// checked for demand, both in the order of their times.
	unstored, idle dueList
	// pressing is set once the first of unstored is overdue, as no transaction has come
	// to go with.
	pressing bool
}

// dueList holds entities with times, in an order of times that never fall.
type dueList struct {
	list []dueEntity
	head int
}

type dueEntity struct {
	e  *entity
	at Tick
}

func (l *dueList) push(e *entity, at Tick) {
	if l.head > 1024 && l.head > len(l.list)/2 {
		n := copy(l.list, l.list[l.head:])
		clear(l.list[n:])
		l.list, l.head = l.list[:n], 0
	}
	l.list = append(l.list, dueEntity{e, at})
}

// next is the time at which the first entity is due; 0 for never.
func (l *dueList) next() Tick {
	if l.head == len(l.list) {
		return 0
	}
	return max(1, l.list[l.head].at)
}

// pop returns the first entity that is due, or nil.
func (l *dueList) pop(now Tick) *entity {
	at := l.next()
	if at == 0 || at > now {
		return nil
	}
	e := l.list[l.head].e
	l.list[l.head] = dueEntity{}
	l.head++
	return e
}

// hasten makes all entities due by a given time at the latest.
func (l *dueList) hasten(at Tick) {
	for i := range l.list[l.head:] {
		d := &l.list[l.head+i]
		d.at = min(d.at, at)
	}
}

// newModel makes a model from a checked name.
func (c *forecasting) newModel(name string) predict.Durable {
	m, err := predict.ByName(name, c.cfg.forecastOptions())
	if err != nil {
		panic(fmt.Sprintf("core: a model whose name was checked: %v", err))
	}
	return m
}

// parkRestored keeps the stored states until they are needed, the latest ones if there is
// no room for all.
func (c *forecasting) parkRestored(records []stored.Forecast) {
	c.forecasts = forecasts{name: c.cfg.Forecast, parked: make(map[string]stored.Forecast)}
	latest := slices.Clone(records)
	slices.SortStableFunc(latest, func(a, b stored.Forecast) int { return -cmp.Compare(a.Wall, b.Wall) })
	for _, r := range latest {
		if len(r.State) == 0 {
			c.dropped(r.Name)
		} else if e := c.space.find(r.Name); e != nil && e.generation == r.Generation {
			c.park(r)
		}
	}
}

// park keeps a state in memory if there is room.
func (c *forecasting) park(r stored.Forecast) {
	f := &c.forecasts
	if f.bytes+len(r.State) <= c.cfg.MaxParked {
		f.parked[r.Name] = r
		f.bytes += len(r.State)
	}
}

// unpark removes and returns a parked state.
func (c *forecasting) unpark(name string) (stored.Forecast, bool) {
	f := &c.forecasts
	r, ok := f.parked[name]
	if ok {
		f.bytes -= len(r.State)
		delete(f.parked, name)
	}
	return r, ok
}

// demanded counts an acquire, granted or not, in an entity's demand.
func (c *forecasting) demanded(e *entity, tokens Tokens) {
	if e.demand.model == nil && !e.demand.counting {
		c.count(e)
	}
	c.roll(e)
	e.demand.acquired(c.now.Tick, tokens)
	if !c.roster.alone() {
		c.peering.active(e)
	}
}

// returned counts a release in an entity's demand.
func (c *forecasting) returned(e *entity, tokens Tokens) {
	c.roll(e)
	e.demand.released(tokens)
	if e.negative() {
		c.peering.active(e)
	}
	c.peering.tellReturn(e)
}

// forecast is the forecast for the horizon of a redistribution, within the entity's
// limit.
func (c *forecasting) forecast(e *entity) predict.Forecast {
	if e.demand.model == nil && !e.demand.counting {
		if _, parked := c.forecasts.parked[e.name]; !parked {
			return predict.Forecast{}
		}
		c.count(e)
	}
	c.roll(e)
	if e.demand.model == nil {
		return predict.Forecast{}
	}
	return e.demand.model.told.Clamp(float64(e.limit))
}

// roll closes an entity's bins that are over.
func (c *forecasting) roll(e *entity) {
	d := &e.demand
	current := c.now.Tick / c.cfg.Bin
	if current != d.bin && d.model == nil && d.counting {
		c.model(e)
	}
	if current == d.bin || !d.roll(current, e.limit) {
		return
	}
	c.rolled(e)
}

// rolled follows up on an entity's closed bins.
func (c *forecasting) rolled(e *entity) {
	d := &e.demand
	if d.model.choice != c.forecasts.choice {
		c.replace(e)
	}
	if fell := predict.Fallbacks(d.model.Durable); fell > d.model.fell {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.ForecastFellBack, Entity: e.name, Count: fell - d.model.fell})
		d.model.fell = fell
	}
	if !d.unstored {
		d.unstored = true
		c.forecasts.unstored.push(e, c.now.Tick+storeEvery)
	}
}

// replace replaces an entity's model by the chosen model.
func (c *forecasting) replace(e *entity) {
	m, err := predict.Replace(e.demand.model.Durable, c.forecasts.name, c.cfg.forecastOptions())
	if err != nil {
		panic(fmt.Sprintf("core: a model whose name was checked: %v", err))
	}
	e.demand.model = c.modelOf(m)
}

// count begins to count an entity's demand. It takes up a parked model, with the bins
// since then missing. A new model has no forecast before its first bin has closed, and is
// made only then: many an entity has no more than one acquire.
func (c *forecasting) count(e *entity) {
	d := &e.demand
	d.begin(c.now.Tick, c.cfg.Bin)
	if _, parked := c.forecasts.parked[e.name]; parked {
		c.model(e)
	}
}

// model gives an entity a model: the parked model or a new one.
func (c *forecasting) model(e *entity) {
	d := &e.demand
	var m predict.Durable
	if r, ok := c.unpark(e.name); ok {
		m = c.takeUp(&r)
	}
	if m == nil {
		m = c.newModel(c.forecasts.name)
	}
	d.model = c.modelOf(m)
	c.idles(e)
}

// idles has the core check later whether an entity still has demand.
func (c *forecasting) idles(e *entity) {
	if d := &e.demand; !d.idles {
		d.idles = true
		c.forecasts.idle.push(e, c.now.Tick+c.idleCheck())
	}
}

func (c *forecasting) modelOf(m predict.Durable) *model {
	return &model{Durable: m, choice: c.forecasts.choice, told: m.Forecast(), fell: predict.Fallbacks(m)}
}

// takeUp makes a model from a stored state; nil if the state is unusable or too old.
func (c *forecasting) takeUp(r *stored.Forecast) predict.Durable {
	if r.Bin != c.cfg.Bin {
		return nil
	}
	gap := c.binStart() - r.Wall
	if gap > longestGap {
		return nil
	}
	m, err := predict.ByName(r.Model, c.cfg.forecastOptions())
	if err == nil {
		err = m.UnmarshalBinary(r.State)
	}
	if err == nil && r.Model != c.forecasts.name {
		m, err = predict.Replace(m, c.forecasts.name, c.cfg.forecastOptions())
	}
	if err != nil {
		c.dropped(r.Name)
		return nil
	}
	if gap > 0 { // else the clock was set back, and nobody knows
		predict.Skip(m, int((gap+int64(c.cfg.Bin)/2)/int64(c.cfg.Bin))) //nolint:gosec // far below
	}
	return m
}

// binStart is the beginning of the current bin, in milliseconds since the Unix epoch.
func (c *forecasting) binStart() int64 {
	return c.now.Wall - int64(c.now.Tick%c.cfg.Bin) //nolint:gosec // below a bin
}

func (c *forecasting) dropped(name string) {
	c.out.Events = append(c.out.Events, event.Event{Kind: event.ForecastDropped, Entity: name, Count: 1})
}

// recordForecast is the present state of an entity's model.
func (c *forecasting) recordForecast(e *entity) (stored.Forecast, bool) {
	if e.demand.model.choice != c.forecasts.choice {
		c.replace(e)
	}
	state, err := e.demand.model.MarshalBinary()
	if err != nil {
		c.dropped(e.name)
		return stored.Forecast{}, false
	}
	return stored.Forecast{
		Name: e.name, Generation: e.generation, Model: c.forecasts.name, Bin: c.cfg.Bin, Wall: c.binStart(), State: state,
	}, true
}

// storeForecasts adds due states to a transaction, a few at most.
func (c *forecasting) storeForecasts(rec *stored.Records) {
	most := storedAtOnce
	if len(rec.Block.Records) > 0 {
		most = storedBeside
	}
	f := &c.forecasts
	for len(rec.Forecasts) < most {
		e := f.unstored.pop(c.now.Tick)
		if e == nil {
			break
		}
		if !c.exists(e) || e.demand.model == nil {
			continue
		}
		c.roll(e)
		e.demand.unstored = false
		if r, ok := c.recordForecast(e); ok {
			rec.Forecasts = append(rec.Forecasts, r)
		}
	}
	f.pressing = f.pressing && f.unstored.next() != 0 && f.unstored.next() <= c.now.Tick
}

// hastenForecasts stores all changed states soon.
func (c *forecasting) hastenForecasts() {
	f := &c.forecasts
	f.unstored.hasten(c.now.Tick)
	f.pressing = f.unstored.next() != 0
}

// idleCheck is the pause between two checks of an entity for demand.
func (c *forecasting) idleCheck() Tick { return c.cfg.ForecastIdle/8 + 1 }

// wakeForecasts has overdue states stored, and frees the models of entities without
// demand once their state is stored.
func (c *forecasting) wakeForecasts() {
	if at := c.forecasts.unstored.next(); at != 0 && at+forecastPatience <= c.now.Tick {
		c.forecasts.pressing = true
	}
	for e := c.forecasts.idle.pop(c.now.Tick); e != nil; e = c.forecasts.idle.pop(c.now.Tick) {
		d := &e.demand
		d.idles = false
		switch {
		case !c.exists(e):
		case d.unstored || c.now.Tick < d.rateTick+c.cfg.ForecastIdle:
			d.idles = true
			c.forecasts.idle.push(e, c.now.Tick+c.idleCheck())
		default:
			c.roll(e)
			if r, ok := c.recordForecast(e); ok {
				c.park(r)
			}
			*d = demand{}
		}
	}
}

// forecastsWake is the next time to do something for the models; 0 for never.
func (c *forecasting) forecastsWake() Tick {
	f := &c.forecasts
	t := f.idle.next()
	if at := f.unstored.next(); at != 0 && !f.pressing {
		t = earlier(t, at+forecastPatience)
	}
	return t
}
