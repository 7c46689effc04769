package site

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// sumsFor is how long sums over all entities are used again. To add up 100,000 entities the
// core makes 25 steps, each of less than a millisecond.
const sumsFor = 2 * time.Second

// sums are the last sums over all entities of the site. A call that finds others adding up
// waits for them.
type sums struct {
	mu   sync.Mutex
	last answer.Sum
	at   time.Time
}

// of returns the sums and their age, and adds up first if they are old.
func (s *sums) of(ctx context.Context, in entities) (answer.Sum, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := time.Since(s.at); !s.at.IsZero() && age < sumsFor {
		return s.last, age, nil
	}
	var sum answer.Sum
	for l := (input.List{Count: 1, Look: lookAt, Sum: true}); ; {
		a, err := in.list(ctx, l)
		if err != nil {
			return sum, 0, in.broken(err, asked{})
		}
		if a.Code != answer.OK {
			return sum, 0, in.failure(a, asked{})
		}
		part := a.Sum()
		sum = answer.Sum{
			Entities: sum.Entities + part.Entities, Waiting: sum.Waiting + part.Waiting,
			Left: sum.Left + part.Left, Net: sum.Net + part.Net, Offered: sum.Offered + part.Offered,
		}
		if l.After = a.After(); !a.More {
			s.last, s.at = sum, time.Now()
			return sum, 0, nil
		}
	}
}

// SurveySites implements samyav1.ClusterServiceServer: what this site holds, and whom it
// reaches. A site that does not serve yet tells what it waits for, and no sums.
func (s cluster) SurveySites(ctx context.Context, _ *samyav1.SurveySitesRequest) (*samyav1.SurveySitesResponse, error) {
	if err := expired(ctx); err != nil {
		return nil, err
	}
	st, err := s.engine.Status(ctx)
	if err != nil {
		return nil, s.broken(err, asked{})
	}
	out := &samyav1.SiteSurvey{
		Site: s.cfg.Name, Known: true, Up: durationpb.New(time.Since(s.began)), Entities: int64(st.Entities), Waiting: int64(st.Waiting), Leases: int64(st.Leases),
		Partitions: int64(len(s.stats().Partitions)), Granted: valueOf(s.metrics.acquires.done), Released: valueOf(s.metrics.releases.done),
		Refused: valueOf(s.metrics.requests.WithLabelValues(s.metrics.acquires.name, string(apierr.OutOfTokens))),
	}
	if st.Missing > 0 {
		out.WaitsFor = s.waiting(st.Missing)
	} else {
		sum, age, err := s.sums.of(ctx, entities{Site: s.Site})
		if err != nil {
			return nil, err
		}
		out.TokensLeft, out.TokensOut, out.TokensOffered, out.Age = int64(sum.Left), int64(sum.Net), int64(sum.Offered), durationpb.New(age)
	}
	trips := s.links.RoundTrips()
	for _, m := range s.members() {
		if m == core.SiteID(s.cfg.Name) {
			continue
		}
		link := &samyav1.PeerLink{Site: string(m)}
		if trip, up := trips[m]; up {
			link.Connected = true
			link.RoundTrip = durationpb.New(trip)
		}
		out.Peers = append(out.Peers, link)
	}
	return &samyav1.SurveySitesResponse{Complete: s.alone(), Sites: []*samyav1.SiteSurvey{out}}, nil
}

// valueOf is the value of a counter.
func valueOf(c prometheus.Counter) uint64 {
	var m dto.Metric
	if c.Write(&m) != nil {
		return 0
	}
	return uint64(m.GetCounter().GetValue())
}
