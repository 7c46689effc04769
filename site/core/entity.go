package core

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/predict"
)

// entity is the machine of one entity at this site: its books, its waiting
// acquires and its sequence of instances.
type entity struct {
	name       string
	generation uint64
	initial    Tokens
	limit      Tokens
	version    uint64
	results    []LimitResult

	// left is what may be handed out now, signed; net is acquired minus
	// released here. What is set aside is in the protocol's state.
	left, net Tokens
	// majority is the entity's sequence of instances that a majority decides, and
	// star its part in those that their members decide; nil until there is one.
	majority *avantan.Machine
	star     *star.Machine
	// moved counts the star instances applied here.
	moved uint64

	demand demand
	queue  queue
	// changes are the limit changes asked for here and not yet decided.
	changes []*pendingChange
	hunt    hunt

	dirtyBooks, dirtyRecord, listed bool

	// wake is when the core must look at this entity again; heapAt is its place
	// in the core's heap, or -1.
	wake   Tick
	heapAt int
}

// offered is what is set aside for the instance under way.
func (e *entity) offered() Tokens {
	var sum Tokens
	if p := e.majority.State().Pledge; p != nil {
		sum = p.Offered
	}
	if e.star != nil {
		for i := range e.star.State().Slices {
			if s := &e.star.State().Slices[i]; !s.Committed {
				sum += s.Pledge.Offered
			}
		}
	}
	return sum
}

func (e *entity) view() View {
	return View{
		Name: e.name, Limit: e.limit, Generation: e.generation, Version: e.version,
		Left: e.left, Offered: e.offered(), Net: e.net,
		Waiting: e.queue.len(), Applied: e.majority.State().Applied, Moved: e.moved,
	}
}

func (e *entity) situation(now Tick, bin Tick) Situation {
	return Situation{
		Left:      e.left,
		Queued:    e.queue.tokens,
		Rate:      e.demand.rateAt(now),
		Forecast:  e.demand.forecast(now, bin),
		LastGrant: e.hunt.lastGrant,
		Changing:  firstDue(e.changes) != nil,
	}
}

// demand follows what clients ask of one entity here. It is volatile: a
// restarted site learns again.
type demand struct {
	model predict.Model
	// bin is the number of the bin being filled; net and peak its running sum
	// and the highest value of that.
	bin       Tick
	net, peak float64
	// rate is tokens acquired a second as of rateTick.
	rate     float64
	rateTick Tick
}

const (
	rateMemory = 250.0 // milliseconds
	// gapBins bounds how many empty bins are told to the model after a pause.
	gapBins = 16
)

func (d *demand) rateAt(now Tick) float64 {
	if d.rate == 0 || now <= d.rateTick {
		return d.rate
	}
	return d.rate * math.Exp(-float64(now-d.rateTick)/rateMemory)
}

// demanded counts an acquire, granted or not, in an entity's demand.
func (c *Core) demanded(e *entity, tokens Tokens) {
	if e.demand.model == nil {
		model, err := c.mods.forecast()
		if err != nil {
			panic(fmt.Sprintf("core: a model whose name was checked: %v", err))
		}
		e.demand = demand{model: model, bin: c.now.Tick / c.cfg.Bin}
	}
	e.demand.acquired(c.now.Tick, c.cfg.Bin, tokens)
}

func (d *demand) acquired(now, binLength Tick, tokens Tokens) {
	d.roll(now, binLength)
	d.rate = d.rateAt(now) + float64(tokens)*1000/rateMemory
	d.rateTick = now
	d.net += float64(tokens)
	d.peak = max(d.peak, d.net)
}

func (d *demand) released(now, binLength Tick, tokens Tokens) {
	d.roll(now, binLength)
	d.net -= float64(tokens)
}

// roll closes the bins that have passed.
func (d *demand) roll(now, binLength Tick) {
	current := now / binLength
	if current == d.bin || d.model == nil {
		d.bin = current
		return
	}
	d.model.Observe(predict.Bin{Net: d.net, Peak: d.peak})
	for range min(current-d.bin-1, gapBins) {
		d.model.Observe(predict.Bin{})
	}
	d.bin, d.net, d.peak = current, 0, 0
}

func (d *demand) forecast(now, binLength Tick) predict.Forecast {
	if d.model == nil {
		return predict.Forecast{}
	}
	d.roll(now, binLength)
	return d.model.Forecast()
}

// shareOf is the part of a limit that a site gets when the entity is created:
// equal parts, the remainder one token each to the first sites.
func shareOf(limit Tokens, members []SiteID, site SiteID) Tokens {
	n := Tokens(len(members))
	share := limit / n
	for i, m := range members {
		if m == site && Tokens(i) < limit%n {
			share++
		}
	}
	return share
}

var _ avantan.Ledger = (*entityLedger)(nil)
