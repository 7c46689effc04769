package ratelimit

import (
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
	// known are entities that have the limit of their rules, as *known by name.
	known *lru.Cache
	// flights look entities up, once at a time for each.
	flights singleflight.Group
	making  chan struct{}
	waiting chan struct{}
	created atomic.Int64
}

var _ Backend = (*Entities)(nil)

// known are the limit and the last figure of an entity.
type known struct {
	limit int64
	// left is the number of tokens that a site had left, at a time in nanoseconds; 0: never
	// seen.
	left, at atomic.Int64
}

// NewEntities makes a Backend.
func NewEntities(quotas Quotas, s Settings) *Entities {
	if s.MaxEntities == 0 {
		s.MaxEntities = DefaultEntities
	}
	// New fails for a size of 0.
	cache, err := lru.New(max(1, s.MaxEntities))
	if err != nil {
		panic(err)
	}
	return &Entities{
		quotas: quotas, cfg: s, now: time.Now, known: cache, making: make(chan struct{}, maxMaking), waiting: make(chan struct{}, maxWaiting),
	}
}

// Take implements Backend. Several charges are an atomic batch: a site grants all or
// none.
func (e *Entities) Take(ctx context.Context, charges []Charge) (Taken, error) {
	return e.with(ctx, charges, func(at []*known) (Taken, error) {
		wait, done := e.wait(ctx)
		defer done()
		if len(charges) == 1 {
			resp, err := e.quotas.AcquireInPlace(ctx, &samyav1.AcquireRequest{Entity: charges[0].Entity, Tokens: charges[0].Hits, Wait: wait})
			if err != nil {
				return e.lacking(charges, at, err)
			}
			e.saw(at[0], resp.GetLeft())
			return Taken{Left: resp.GetLeft()}, nil
		}
		req := &samyav1.BatchRequest{Atomic: true, Wait: wait, Operations: make([]*samyav1.Operation, len(charges))}
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
func (e *Entities) lacking(charges []Charge, at []*known, err error) (Taken, error) {
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
		if c.Entity == taken.Lacking {
			e.saw(at[i], taken.Left)
		}
	}
	return taken, nil
}

// Left implements Backend.
func (e *Entities) Left(ctx context.Context, m *rules.Match, stale bool) (int64, error) {
	taken, err := e.with(ctx, []Charge{{m, 1}}, func(at []*known) (Taken, error) {
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
	_, err := e.with(ctx, []Charge{c}, func(at []*known) (Taken, error) {
		req := &samyav1.AcquireRequest{Entity: c.Entity, Tokens: c.Hits, MinTokens: 1, Wait: durationpb.New(0)}
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
func (e *Entities) saw(k *known, left int64) {
	k.left.Store(left)
	k.at.Store(e.now().UnixNano())
}

// with runs do when the entities of all charges exist. If a site says that an entity does
// not exist, with looks up all entities again.
func (e *Entities) with(ctx context.Context, charges []Charge, do func([]*known) (Taken, error)) (taken Taken, err error) {
	for range 2 {
		at := make([]*known, len(charges))
		for i, c := range charges {
			if at[i], err = e.find(ctx, c.Match); err != nil {
				return Taken{}, err
			}
		}
		if taken, err = do(at); apierr.ReasonOf(err) != apierr.EntityNotFound {
			return taken, err
		}
		for _, c := range charges {
			e.known.Remove(c.Entity)
		}
	}
	return taken, err
}

// wait is how long an acquire may wait. done must be called at its end.
func (e *Entities) wait(ctx context.Context) (wait *durationpb.Duration, done func()) {
	d := e.cfg.Wait
	if by, ok := ctx.Deadline(); ok {
		d = min(d, by.Sub(e.now())-margin)
	}
	if d <= 0 {
		return durationpb.New(0), func() {}
	}
	select {
	case e.waiting <- struct{}{}:
		return durationpb.New(d), func() { <-e.waiting }
	default:
		return durationpb.New(0), func() {}
	}
}

// find returns the entity of a rule. It creates the entity, or changes its
// limit, where that is needed.
func (e *Entities) find(ctx context.Context, m *rules.Match) (*known, error) {
	if v, ok := e.known.Get(m.Entity); ok {
		if k := v.(*known); k.limit == m.Limit {
			return k, nil
		}
	}
	result := e.flights.DoChan(m.Entity, func() (any, error) {
		select {
		case e.making <- struct{}{}:
			defer func() { <-e.making }()
		default:
			return nil, apierr.Overload("", time.Second)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTime)
		defer cancel()
		if err := e.ensure(ctx, m); err != nil {
			return nil, err
		}
		k := &known{limit: m.Limit}
		e.known.Add(m.Entity, k)
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

// ensure makes sure that the entity of a rule exists, with the limit of the rule.
func (e *Entities) ensure(ctx context.Context, m *rules.Match) error {
	const attempts = 5
	for i := range attempts {
		if i > 0 {
			// Another app manager was faster, and the nearest site has not heard of it.
			if err := route.Pause(ctx, 20*time.Millisecond<<i); err != nil {
				return apierr.Ended(err)
			}
		}
		resp, err := e.quotas.GetEntity(ctx, &samyav1.GetEntityRequest{Name: m.Entity, Consistency: samyav1.Consistency_CONSISTENCY_LOCAL})
		if err == nil {
			err = e.adjust(ctx, m, resp.GetEntity())
		} else if apierr.ReasonOf(err) == apierr.EntityNotFound {
			err = e.create(ctx, m)
		}
		switch apierr.ReasonOf(err) {
		case apierr.EntityExists, apierr.VersionMismatch, apierr.EntityNotFound:
			continue
		}
		return err
	}
	return apierr.Overload("", time.Second)
}

// create creates the entity of a rule.
func (e *Entities) create(ctx context.Context, m *rules.Match) error {
	if n := e.created.Add(1); n > int64(e.cfg.MaxEntities) {
		e.created.Add(-1)
		return apierr.New(apierr.Overloaded, "this app manager has created %d entities for rate limits, as many as --ratelimit-entities allows", n-1)
	}
	_, err := e.quotas.CreateEntity(ctx, &samyav1.CreateEntityRequest{
		Name: m.Entity, Limit: m.Limit, Per: m.Terms.Per(), Kind: string(m.Terms.Kind),
	})
	if err != nil {
		e.created.Add(-1)
		return err
	}
	return nil
}

// adjust gives an entity the limit of its rule.
func (e *Entities) adjust(ctx context.Context, m *rules.Match, at *samyav1.Entity) error {
	switch {
	case at.GetPer() != m.Terms.Per() || at.GetKind() != string(m.Terms.Kind):
		return apierr.Wrap(apierr.Internal, fmt.Errorf("the entity %q is no rate quota of kind %q with windows of %s", m.Entity, m.Terms.Kind, m.Terms.Per()))
	case at.GetLimit() == m.Limit:
		return nil
	}
	_, err := e.quotas.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: m.Entity, Limit: m.Limit, ExpectedVersion: at.GetVersion()})
	return err
}
