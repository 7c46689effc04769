package reads

import (
	"context"
	"sync"
	"time"

	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// spreadTime bounds how long the answer to a create waits for sites that have not heard
// of the entity yet. It is several times the longest way between two regions.
const spreadTime = time.Second

// Spread waits until every member site that answers knows e, which was just created. Its
// creator may then acquire of e anywhere at once: a site that had not heard of e would
// say that it does not exist. spread waits for spreadTime at most, and ends early enough
// for the answer to come before the caller's deadline. A site that is behind by then
// catches up by itself.
func (s *Reads) Spread(ctx context.Context, e *samyav1.Entity) {
	ctx, cancel := context.WithTimeout(ctx, within(ctx, spreadTime))
	defer cancel()
	set, err := s.router.Members(ctx)
	if err != nil {
		return
	}
	var asking sync.WaitGroup
	for _, m := range set.Sites {
		asking.Go(func() {
			for wait := firstAgain; !s.knows(ctx, m.GetName(), e); wait = min(2*wait, lastAgain) {
				if route.Pause(ctx, wait) != nil {
					return
				}
			}
		})
	}
	asking.Wait()
}

// knows reports whether a site knows e, or a later entity of its name. For a site that
// does not answer, it reports true: spread does not wait for such a site.
func (s *Reads) knows(ctx context.Context, site string, e *samyav1.Entity) bool {
	resp, err := s.share(ctx, site, e.GetName(), samyav1.Consistency_CONSISTENCY_LOCAL)
	if err != nil {
		return apierr.ReasonOf(err) != apierr.EntityNotFound
	}
	return resp.GetEntity().GetGeneration() >= e.GetGeneration()
}
