package reads

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// callTime bounds a read of a single site.
	callTime = 10 * time.Second
	// readTime bounds a global read unless its caller gives less.
	readTime = 2 * time.Second
)

// Reads answers the reads of the public API. Every error it returns is an *apierr.Error.
type Reads struct {
	name, cluster string
	router        *route.Router
	limiter       *limiter.Limiter
	metrics       *metrics
	seen          *lastSeen
	// watching bounds the watches, by caller.
	watching *limiter.Portions
}

// New makes the reads of the app manager name. The limiter ends watches when it is
// closed.
func New(name, cluster string, r *route.Router, g *limiter.Limiter, reg prometheus.Registerer) (*Reads, error) {
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	return &Reads{
		name: name, cluster: cluster, router: r, limiter: g, metrics: m, seen: newLastSeen(maxSeen), watching: limiter.NewPortions(limiter.MaxStreaming),
	}, nil
}

// defaultAge bounds the age of figures of a bounded read that gives no age.
const defaultAge = 5 * time.Second

// GetEntity implements samyav1.EntityServiceServer. The caller chooses how many sites it
// asks; see samyav1.Consistency.
func (s *Reads) GetEntity(ctx context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	age, ageErr := maxAge(in.GetMaxAge())
	if err := errors.Join(name.Entity("name", in.GetName()), consistency(in.GetConsistency()), ageErr); err != nil {
		return nil, apierr.FromName(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, apierr.Ended(err)
	}
	switch in.GetConsistency() {
	case samyav1.Consistency_CONSISTENCY_LOCAL:
		resp, err := s.nearest(ctx, in.GetName(), in.GetConsistency())
		for _, sh := range resp.GetUsage().GetShares() {
			// Moves are for readers that add shares up.
			sh.Moves = nil
		}
		return resp, err
	case samyav1.Consistency_CONSISTENCY_BOUNDED:
		return s.bounded(ctx, in.GetName(), age)
	default:
		return s.exact(ctx, in.GetName())
	}
}

func consistency(c samyav1.Consistency) error {
	if _, known := samyav1.Consistency_name[int32(c)]; !known {
		return &name.Error{Field: "consistency", Problem: "none that is known"}
	}
	return nil
}

func maxAge(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return defaultAge, nil
	}
	if d.CheckValid() != nil {
		return 0, &name.Error{Field: "max_age", Problem: "no valid duration"}
	}
	return d.AsDuration(), name.Age("max_age", d.AsDuration())
}

// nearest asks the nearest healthy site alone.
func (s *Reads) nearest(ctx context.Context, entity string, how samyav1.Consistency) (*samyav1.GetEntityResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	resp := &samyav1.GetEntityResponse{}
	err := s.router.Do(ctx, route.Call{
		Method: samyav1.EntityService_GetEntity_FullMethodName, Resp: resp, Read: true, Entity: entity,
		Req: &samyav1.GetEntityRequest{Name: entity, Consistency: how},
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// bounded asks the nearest site for its own figures and for the figures it has heard of
// other sites. It asks a site itself if the site's figures are missing or older than age.
// Complete then says that no figure is older.
func (s *Reads) bounded(ctx context.Context, entity string, age time.Duration) (*samyav1.GetEntityResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, within(ctx, readTime))
	defer cancel()
	first, err := s.nearest(ctx, entity, samyav1.Consistency_CONSISTENCY_BOUNDED)
	if err != nil {
		return nil, err
	}
	heard := time.Now()
	told := first.GetUsage().GetShares()
	replies := make([]reply, len(told))
	old := s.seen.get(entity)
	if old == nil {
		old = map[string]figure{}
	}
	var asking []string
	for i, sh := range told {
		r := &replies[i]
		r.site = sh.GetSite()
		switch f, seen := old[r.site]; {
		case sh.GetKnown() && sh.GetAge().AsDuration() <= age:
			*r = reply{site: r.site, resp: first, age: sh.GetAge().AsDuration()}
			continue
		case sh.GetKnown() && (!seen || f.generation < first.GetEntity().GetGeneration() || heard.Add(-sh.GetAge().AsDuration()).After(f.seen)):
			old[r.site] = figure{share: sh, generation: first.GetEntity().GetGeneration(), seen: heard.Add(-sh.GetAge().AsDuration())}
		}
		asking = append(asking, r.site)
	}
	s.ask(ctx, entity, s.telling(samyav1.Consistency_CONSISTENCY_LOCAL), replies, asking, 0)
	sum, fresh, err := merge(entity, replies, old, heard)
	if err != nil {
		return nil, err
	}
	s.seen.put(entity, fresh)
	return sum, nil
}
