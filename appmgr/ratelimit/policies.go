package ratelimit

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/rates"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// maxPolicies bounds the entities that Policies knows.
	maxPolicies = 10_000
	// maxLooking bounds the look-ups under way; beyond it an answer goes without fields.
	maxLooking = 16
	// quotaTime is how long a rate quota is known, and otherTime another entity: only the
	// limit of a rate quota matters, and no other entity becomes a rate quota.
	quotaTime, otherTime = 5 * time.Second, 5 * time.Minute
	lookTime             = 2 * time.Second
)

// Getter reads entities.
type Getter interface {
	GetEntity(ctx context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error)
}

// Policies knows the rate quotas among the entities that clients acquire from, so that
// answers can tell of them. It looks up an entity beside the requests: no answer waits.
type Policies struct {
	entities Getter
	known    *lru.Cache // of *policy, by the names of entities
	looking  chan struct{}
}

// policy is the limit and the terms of an entity, as known until a time.
type policy struct {
	limit int64
	terms rates.Terms // None: no rate quota
	until time.Time
}

// NewPolicies makes policies that know no entity.
func NewPolicies(entities Getter) *Policies {
	// New fails for a size of 0.
	cache, err := lru.New(maxPolicies)
	if err != nil {
		panic(err)
	}
	return &Policies{entities: entities, known: cache, looking: make(chan struct{}, maxLooking)}
}

// Tell adds a rate quota to the fields, with the tokens that a site has left. It adds nothing for
// another entity, or for an entity that is not known yet.
func (p *Policies) Tell(f *Fields, entity string, left int64, now time.Time) {
	v, ok := p.known.Get(entity)
	if !ok || now.After(v.(*policy).until) {
		p.look(entity)
	}
	if ok {
		of := v.(*policy)
		f.Add(entity, of.limit, &of.terms, left, now)
	}
}

// look looks up an entity, unless many are being looked up.
func (p *Policies) look(entity string) {
	select {
	case p.looking <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-p.looking }()
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		resp, err := p.entities.GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity, Consistency: samyav1.Consistency_CONSISTENCY_LOCAL})
		now := time.Now()
		switch {
		case apierr.ReasonOf(err) == apierr.EntityNotFound:
			p.known.Remove(entity)
		case err == nil:
			of := &policy{limit: resp.GetEntity().GetLimit(), until: now.Add(otherTime)}
			e := resp.GetEntity()
			if terms, err := rates.Parse(e.GetKind(), e.GetPer(), e.GetTimeZone(), e.Durable); err == nil && !terms.None() {
				of.terms, of.until = terms, now.Add(quotaTime)
			}
			p.known.Add(entity, of)
		}
	}()
}
