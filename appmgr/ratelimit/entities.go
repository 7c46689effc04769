package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru"
	"golang.org/x/sync/singleflight"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
	"github.com/samya-db/samya/internal/rates"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// maxMaking bounds the entities that are looked up or created at a time.
	maxMaking = 64
	// makeTime bounds a look-up with its creation. It goes on if its caller gives up.
	makeTime = 10 * time.Second
	// maxWaiting bounds the acquires that may wait for tokens of other sites.
	maxWaiting = 1024
	// margin is the part of a caller's time that is kept for the way back.
	margin = 5 * time.Millisecond
	// staleTime is the age up to which a figure of tokens left is told as it is.
	staleTime = time.Second
	// maxFigures bounds the entities and keys with figures, of about 200 bytes each.
	maxFigures = 65_536
)

// Quotas is the part of the public API that entities are counted with.
type Quotas interface {
	AcquireInPlace(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)
	Batch(ctx context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error)
	CreateEntity(ctx context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error)
	UpdateEntity(ctx context.Context, in *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error)
	GetEntity(ctx context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error)
}

// Entities is the Backend that has an entity for each key. It creates an entity at its
// first use, and gives it the limit of the rule.
type Entities struct {
	quotas Quotas
	cfg    Settings
	now    func() time.Time
	// known are entities and templates that have the limit of their rules, as *known by name.
	known *lru.Cache
	// figures are the last figures of entities and keys, as *figure by name.
	figures *lru.Cache
	// flights look entities up, once at a time for each.
	flights singleflight.Group
	making  chan struct{}
	waiting chan struct{}
	created atomic.Int64
}

var _ Backend = (*Entities)(nil)

// known are the limit and the terms of an entity or a template.
type known struct {
	limit int64
	terms rates.Terms
}

// figure is what a site last told of an entity or a key.
type figure struct {
	// left is the number of tokens that a site had left, at a time in nanoseconds; 0: never
	// seen.
	left, at atomic.Int64
	// lacks is the number of tokens that no site in reach has of a key before a time in
	// nanoseconds.
	lacks, until atomic.Int64
}

// refuses reports whether no site in reach has so many tokens of a key now, for all that is
// known.
func (f *figure) refuses(tokens int64, now time.Time) bool {
	return now.UnixNano() < f.until.Load() && tokens >= f.lacks.Load()
}

// NewEntities makes a Backend.
func NewEntities(quotas Quotas, s Settings) *Entities {
	if s.MaxEntities == 0 {
		s.MaxEntities = DefaultEntities
	}
	return &Entities{
		quotas: quotas, cfg: s, now: time.Now, known: newCache(max(1, s.MaxEntities)), figures: newCache(maxFigures),
		making: make(chan struct{}, maxMaking), waiting: make(chan struct{}, maxWaiting),
	}
}

func newCache(size int) *lru.Cache {
	cache, err := lru.New(size)
	if err != nil {
		panic(err) // for a size of 0
	}
	return cache
}

// Take implements Backend. Several charges are an atomic batch: a site grants all or
// none.
func (e *Entities) Take(ctx context.Context, charges []Charge) (Taken, error) {
	return e.with(ctx, charges, func(at []*figure) (Taken, error) {
		if c := charges[0]; len(charges) == 1 && c.Template != "" && at[0].refuses(c.Hits, e.now()) {
			return Taken{Lacking: c.Entity, Left: max(0, at[0].left.Load())}, nil
		}
		wait, waits := e.wait(ctx)
		if waits {
			defer e.waited()
		}
		if len(charges) == 1 {
			resp, err := e.quotas.AcquireInPlace(ctx, &samyav1.AcquireRequest{Entity: charges[0].Entity, Tokens: charges[0].Hits, Wait: wait, Once: true})
			if err != nil {
				return e.lacking(charges, at, err)
			}
			e.saw(at[0], resp.GetLeft())
			return Taken{Left: resp.GetLeft()}, nil
		}
		req := &samyav1.BatchRequest{Atomic: true, Wait: wait, Once: true, Operations: make([]*samyav1.Operation, len(charges))}
		for i, c := range charges {
			req.Operations[i] = &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: c.Entity, Tokens: c.Hits}}}
		}
		if _, err := e.quotas.Batch(ctx, req); err != nil {
			return e.lacking(charges, at, err)
		}
		for i, c := range charges {
			at[i].left.Add(-c.Hits)
		}
		return Taken{Left: unknown}, nil
	})
}

// lacking reads the error of a site that grants nothing. A site that has too many acquires
// waiting for tokens of an entity has none left: a rule refuses, and is not at fault.
func (e *Entities) lacking(charges []Charge, at []*figure, err error) (Taken, error) {
	refused := apierr.From(err)
	switch refused.Reason {
	case apierr.OutOfTokens, apierr.ExceedsLimit, apierr.QueueFull:
	default:
		return Taken{}, err
	}
	taken := Taken{Lacking: refused.Lacking, Left: unknown}
	if taken.Lacking == "" {
		taken.Lacking = refused.Entity
	}
	if taken.Lacking == "" || len(charges) == 1 {
		taken.Lacking = charges[0].Entity
	}
	if refused.Left == nil {
		return taken, nil
	}
	taken.Left = *refused.Left
	for i, c := range charges {
		if c.Entity != taken.Lacking {
			continue
		}
		if e.saw(at[i], taken.Left); c.Template != "" && len(charges) == 1 && refused.RetryAfter > 0 {
			// Only time brings tokens of keys, unless a site was away that has some.
			lacks := refused.RetryAfter
			if refused.Elsewhere {
				lacks = min(lacks, staleTime)
			}
			at[i].lacks.Store(c.Hits)
			at[i].until.Store(e.now().Add(lacks).UnixNano())
		}
	}
	return taken, nil
}

// Left implements Backend.
func (e *Entities) Left(ctx context.Context, m *rules.Match, stale bool) (int64, error) {
	taken, err := e.with(ctx, []Charge{{m, 1}}, func(at []*figure) (Taken, error) {
		if seen := at[0].at.Load(); stale && seen > 0 && e.now().UnixNano()-seen < int64(staleTime) {
			return Taken{Left: max(0, at[0].left.Load())}, nil
		}
		resp, err := e.quotas.AcquireInPlace(ctx, &samyav1.AcquireRequest{Entity: m.Entity, Tokens: 1, DryRun: true, Wait: durationpb.New(0)})
		if err != nil {
			taken, err := e.lacking([]Charge{{m, 1}}, at, err)
			return Taken{Left: max(0, taken.Left)}, err
		}
		e.saw(at[0], resp.GetLeft())
		return Taken{Left: resp.GetLeft()}, nil
	})
	return taken.Left, err
}

// Drain implements Backend.
func (e *Entities) Drain(ctx context.Context, c Charge) error {
	_, err := e.with(ctx, []Charge{c}, func(at []*figure) (Taken, error) {
		req := &samyav1.AcquireRequest{Entity: c.Entity, Tokens: c.Hits, MinTokens: 1, Wait: durationpb.New(0), Once: true}
		resp, err := e.quotas.AcquireInPlace(ctx, req)
		if err != nil {
			return e.lacking([]Charge{c}, at, err)
		}
		e.saw(at[0], resp.GetLeft())
		return Taken{}, nil
	})
	return err
}

// saw notes how many tokens of an entity a site has left.
func (e *Entities) saw(f *figure, left int64) {
	f.left.Store(left)
	f.at.Store(e.now().UnixNano())
}

// with runs do when the entities of all charges exist. If a site says that an entity does
// not exist, with looks up all entities again.
func (e *Entities) with(ctx context.Context, charges []Charge, do func([]*figure) (Taken, error)) (taken Taken, err error) {
	for range 2 {
		at := make([]*figure, len(charges))
		for i, c := range charges {
			if _, err := e.find(ctx, c.Match); err != nil {
				return Taken{}, err
			}
			at[i] = e.figureOf(c.Entity)
		}
		if taken, err = do(at); apierr.ReasonOf(err) != apierr.EntityNotFound {
			return taken, err
		}
		for _, c := range charges {
			e.known.Remove(entityOf(c.Match))
			e.figures.Remove(c.Entity)
		}
	}
	return taken, err
}

// wait is how long an acquire may wait. If it waits, waited must be called at its end.
func (e *Entities) wait(ctx context.Context) (wait *durationpb.Duration, waits bool) {
	d := e.cfg.Wait
	if by, ok := ctx.Deadline(); ok {
		d = min(d, by.Sub(e.now())-margin)
	}
	if d <= 0 {
		return durationpb.New(0), false
	}
	select {
	case e.waiting <- struct{}{}:
		return durationpb.New(d), true
	default:
		return durationpb.New(0), false
	}
}

func (e *Entities) waited() { <-e.waiting }

// entityOf is the name of the entity or template of a rule.
func entityOf(m *rules.Match) string { return cmp.Or(m.Template, m.Entity) }

// figureOf is the figure of an entity or a key.
func (e *Entities) figureOf(name string) *figure {
	if f, ok := e.figures.Get(name); ok {
		return f.(*figure)
	}
	f := new(figure)
	e.figures.Add(name, f)
	return f
}

// find makes sure that the entity or template of a rule exists. It creates it, or changes its
// limit, where that is needed.
func (e *Entities) find(ctx context.Context, m *rules.Match) (*known, error) {
	name := entityOf(m)
	if v, ok := e.known.Get(name); ok && v.(*known).limit == m.Limit {
		return v.(*known), nil
	}
	result := e.flights.DoChan(name, func() (any, error) {
		select {
		case e.making <- struct{}{}:
			defer func() { <-e.making }()
		default:
			return nil, apierr.Overload("", time.Second)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTime)
		defer cancel()
		terms, err := e.ensure(ctx, m)
		if err != nil {
			return nil, err
		}
		if e.known.Contains(name) {
			e.figures.Purge() // another limit has other refusals
		}
		k := &known{limit: m.Limit, terms: terms}
		e.known.Add(name, k)
		return k, nil
	})
	select {
	case <-ctx.Done():
		return nil, apierr.Ended(ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*known), nil
	}
}

// ensure makes sure that the entity of a rule exists, with the limit of the rule, and returns
// its terms.
func (e *Entities) ensure(ctx context.Context, m *rules.Match) (rates.Terms, error) {
	const attempts = 5
	for i := range attempts {
		if i > 0 {
			// Another app manager was faster, and the nearest site has not heard of it.
			if err := route.Pause(ctx, 20*time.Millisecond<<i); err != nil {
				return rates.Terms{}, apierr.Ended(err)
			}
		}
		terms := e.cfg.termsOf(m)
		resp, err := e.quotas.GetEntity(ctx, &samyav1.GetEntityRequest{Name: entityOf(m), Consistency: samyav1.Consistency_CONSISTENCY_LOCAL})
		if err == nil {
			terms, err = e.adjust(ctx, m, resp.GetEntity())
		} else if apierr.ReasonOf(err) == apierr.EntityNotFound {
			err = e.create(ctx, m, &terms)
		}
		switch apierr.ReasonOf(err) {
		case apierr.EntityExists, apierr.VersionMismatch, apierr.EntityNotFound:
			continue
		}
		return terms, err
	}
	return rates.Terms{}, apierr.Overload("", time.Second)
}

// create creates the entity of a rule.
func (e *Entities) create(ctx context.Context, m *rules.Match, t *rates.Terms) error {
	if n := e.created.Add(1); n > int64(e.cfg.MaxEntities) {
		e.created.Add(-1)
		return apierr.New(apierr.Overloaded, "this process has created %d entities for rate limits, as many as --ratelimit-entities allows", n-1)
	}
	_, err := e.quotas.CreateEntity(ctx, &samyav1.CreateEntityRequest{
		Name: entityOf(m), Limit: m.Limit, Per: t.Per(), Kind: string(t.Kind), Keys: t.Keys,
	})
	if err != nil {
		e.created.Add(-1)
		return err
	}
	return nil
}

// adjust gives an entity the limit of its rule, and returns its terms. An operator may have
// created it as a bucket of the same period.
func (e *Entities) adjust(ctx context.Context, m *rules.Match, at *samyav1.Entity) (rates.Terms, error) {
	terms, err := rates.Parse(at.GetKind(), at.GetPer(), at.GetTimeZone(), at.Durable)
	switch {
	case err != nil || at.GetPer() != m.Terms.Per() || terms.Kind != m.Terms.Kind && terms.Kind != rates.Bucket || at.GetKeys() != m.Terms.Keys:
		return terms, apierr.Wrap(apierr.Internal, fmt.Errorf("the entity %q is no rate quota of kind %q with windows of %s and keys: %t", entityOf(m), m.Terms.Kind, m.Terms.Per(), m.Terms.Keys))
	case at.GetLimit() == m.Limit:
		return terms, nil
	}
	_, err = e.quotas.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: entityOf(m), Limit: m.Limit, ExpectedVersion: at.GetVersion()})
	return terms, err
}
