package route

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// drainTime is how long a site that says that it drains gets no acquires, unless a list of
// the members says otherwise. A site that lags behind may say so in error.
const drainTime = membersInterval

// learn follows the seats as a site tells them, until ctx ends. All sites are followed: a
// site that was cut off, or written off, knows nothing of that.
func (r *Router) learn(ctx context.Context, l *link) {
	for {
		wait := r.cfg.ProbeInterval
		if l.state().Reach == health.Up {
			err := r.watchSeats(ctx, l)
			if apierr.ReasonOf(err) == apierr.RouteNotFound {
				// The build of the site has lists, but no watch.
				wait, err = membersInterval, r.askSeats(ctx, l)
			}
			r.log.DebugContext(ctx, "a site does not tell the members", slog.String("site", l.info.Name), slog.Any("error", err))
		}
		if Pause(ctx, wait) != nil {
			return
		}
	}
}

// watchSeats learns from a watch at a site until it ends.
func (r *Router) watchSeats(ctx context.Context, l *link) error {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[samyav1.WatchMembersResponse], error) {
		return samyav1.NewClusterServiceClient(l.conn).WatchMembers(ctx, &samyav1.WatchMembersRequest{})
	}
	return stay(ctx, r, l, seats.Silence, open, func(told *samyav1.WatchMembersResponse) (bool, error) {
		r.told(told.GetList())
		return false, nil
	})
}

// askSeats learns from a list of a site.
func (r *Router) askSeats(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.ProbeTimeout)
	defer cancel()
	list := &samyav1.ListMembersResponse{}
	_, err := l.invoke(ctx, samyav1.ClusterService_ListMembers_FullMethodName, &samyav1.ListMembersRequest{}, list)
	if err == nil {
		r.told(list)
	}
	return err
}

// told learns from a list.
func (r *Router) told(list *samyav1.ListMembersResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	learned := r.seats.Learn(list)
	if learned == r.seats {
		return
	}
	r.seats = learned
	r.changed.Add(1)
	close(r.reseated)
	r.reseated = make(chan struct{})
}

// Seats returns the seats as sites told them, and a channel that is closed at the next
// change.
func (r *Router) Seats() (*seats.Book, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seats, r.reseated
}

// seatsNow returns the seats alone.
func (r *Router) seatsNow() *seats.Book {
	b, _ := r.Seats()
	return b
}

// within returns the sites that are not out: nothing is sent to the others.
func within(infos []SiteInfo, b *seats.Book) []SiteInfo {
	var in []SiteInfo
	for _, i := range infos {
		if !b.Out(i.Name) {
			in = append(in, i)
		}
	}
	return in
}

// shun has a site get no acquires for drainTime, as it said that it drains. Its health
// stays as it is.
func (l *link) shun(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drainsUntil = now.Add(drainTime)
	l.changed.Add(1)
}

// takes reports whether a call takes new tokens, which no site that drains grants.
func (c *Call) takes() bool {
	switch {
	case c.Moves == nil:
		return c.Method == samyav1.TokenService_Acquire_FullMethodName
	case c.Moves.Batch != nil:
		return true
	}
	return c.Moves.Operation.GetAcquire() != nil
}

// heirFirst has the heir of a lease come right behind the site at i, which has handed the
// lease over. Sites that were asked are not asked again.
func heirFirst(links []*link, i int, heir string) []*link {
	for j := i + 2; j < len(links); j++ {
		if links[j].info.Name == heir {
			return bringForward(links, j, i+1)
		}
	}
	return links
}

// bringForward returns links with the link at from before the link at to.
func bringForward(links []*link, from, to int) []*link {
	moved := make([]*link, 0, len(links))
	moved = append(append(moved, links[:to]...), links[from])
	moved = append(append(moved, links[to:from]...), links[from+1:]...)
	return moved
}

// settleHome replaces a site that has left by its heir in a call for that site. It fails if
// nobody answers for the site.
func (r *Router) settleHome(c *Call) error {
	home, lost := r.seatsNow().Home(c.Site)
	switch {
	case lost && c.By == ofLease:
		e := apierr.New(apierr.LeaseNotFound, "site %s was written off, and its leases have ended", home)
		e.Site = home
		return e
	case lost:
		e := apierr.New(apierr.SiteUnavailable, "site %s was written off; nothing was done", home)
		e.Site = home
		return e
	case home == "":
		return apierr.Invalid(cmp.Or(c.By, "site"), "no such site")
	}
	c.Site = home
	return nil
}

// ofLease is the field that names the home of a lease.
const ofLease = "lease"

// unmoved returns e, or an error for callers instead of LeaseMoved, which says something to
// routers alone.
func unmoved(e *apierr.Error) *apierr.Error {
	if e == nil || e.Reason != apierr.LeaseMoved {
		return e
	}
	to := apierr.Unreachable(e.Site)
	to.Err = e
	return to
}
