package site

import (
	"context"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/activity"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// noteEvery is the time between two looks at the entities that somebody looks at.
const noteEvery = time.Second

// observer notes the activity of entities that somebody looks at.
type observer struct {
	*Site
	log activity.Log
}

// run notes until ctx ends.
func (o *observer) run(ctx context.Context) {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			names, ended := o.log.Entities(now.UnixMilli())
			for _, entity := range names {
				o.note(ctx, entity)
			}
			for _, entity := range ended {
				o.end(ctx, entity)
			}
		}
	}
}

// note looks at an entity once. A look that fails leaves a gap.
func (o *observer) note(ctx context.Context, entity string) {
	ctx, cancel := context.WithTimeout(ctx, noteEvery)
	defer cancel()
	a, err := o.engine.Do(ctx, func(c input.Call) input.Input { return &input.Observe{Call: c, Entity: entity} })
	switch {
	case err != nil:
		return
	case a.Code == answer.NotFound:
		o.log.Drop(entity)
		return
	case a.Code != answer.OK || a.Details.Observed.Since == 0:
		return
	}
	v, seen := a.View(), a.Details.Observed
	p := activity.Point{
		AtMS: time.Now().UnixMilli(), TookMS: int64(seen.Since),
		Granted: int64(seen.Tally.Granted), Refused: int64(seen.Tally.Refused), Released: int64(seen.Tally.Released),
		Waiting: int64(v.Waiting), Left: int64(v.Usable), Net: int64(v.Net),
	}
	if seen.Forecasts {
		p.Forecast = &activity.Forecast{
			Expected: seen.Forecast.Expected, Median: seen.Forecast.Median, High: seen.Forecast.High, HorizonMS: int64(seen.Horizon),
		}
	}
	var moves []activity.Move
	for _, m := range seen.Tally.Moves {
		move := activity.Move{AtMS: m.Wall, From: string(m.From), To: string(m.To), Tokens: int64(m.Tokens)}
		switch {
		case move.From == "" && move.Tokens > 0:
			move.To = o.cfg.Name
		case move.From == "":
			move.From, move.Tokens = o.cfg.Name, -move.Tokens
		}
		moves = append(moves, move)
	}
	o.log.Note(entity, p, moves)
}

// end tells the core that nobody looks at an entity any more. If the core does not hear of it,
// the next look at any entity ends what nobody looks at.
func (o *observer) end(ctx context.Context, entity string) {
	ctx, cancel := context.WithTimeout(ctx, noteEvery)
	defer cancel()
	_, err := o.engine.Do(ctx, func(c input.Call) input.Input { return &input.Observe{Call: c, Entity: entity, End: true} })
	if err != nil {
		o.Site.log.Debug("an entity is counted on", "entity", entity, "error", err)
	}
}

// GetEntityActivity implements samyav1.EntityServiceServer: what this site noted.
func (s entities) GetEntityActivity(ctx context.Context, r *samyav1.GetEntityActivityRequest) (*samyav1.GetEntityActivityResponse, error) {
	if err := name.Entity("name", r.GetName()); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := expired(ctx); err != nil {
		return nil, err
	}
	a, err := asked{entity: r.GetName()}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.ReadForecast{Call: c} })
	if err != nil {
		return nil, err
	}
	model, now := a.Forecast().Model, time.Now().UnixMilli()
	points, moves, fresh := s.observer.log.Ask(r.GetName(), r.GetSinceMs(), now)
	if fresh {
		// The first look begins the count.
		_, err := asked{entity: r.GetName()}.ask(ctx, s.Site, func(c input.Call) input.Input { return &input.Observe{Call: c, Entity: r.GetName()} })
		if err != nil {
			s.observer.log.Drop(r.GetName())
			return nil, err
		}
	}
	out := &samyav1.SiteActivity{Site: s.cfg.Name, Known: true, Model: model}
	for i := range points {
		p := &points[i]
		out.Points = append(out.Points, &samyav1.ActivityPoint{
			AtMs: p.AtMS, TookMs: p.TookMS, Granted: p.Granted, Refused: p.Refused, Released: p.Released, Waiting: p.Waiting, Left: p.Left, Net: p.Net,
			Forecast: bandOf(p.Forecast),
		})
	}
	for _, m := range moves {
		by := "transfer"
		if m.From == "" || m.To == "" {
			by = "instance"
		}
		out.Moves = append(out.Moves, &samyav1.TokenMove{AtMs: m.AtMS, From: m.From, To: m.To, Tokens: m.Tokens, By: by})
	}
	return &samyav1.GetEntityActivityResponse{Complete: cluster{Site: s.Site}.alone(), NowMs: now, Sites: []*samyav1.SiteActivity{out}}, nil
}

func bandOf(f *activity.Forecast) *samyav1.ForecastBand {
	if f == nil {
		return nil
	}
	return &samyav1.ForecastBand{Expected: f.Expected, Median: f.Median, High: f.High, HorizonMs: f.HorizonMS}
}
