package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/seats"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// drainTime is how long a site that says that it drains gets no acquires, unless the list
// of the members says so as well. A site that lags behind may say so in error.
const drainTime = 5 * time.Second

// listTime is the time between two lists of a site without the watch. deniedTime is the
// time between two tries at a site that denies the watch to this caller.
const listTime, deniedTime = 5 * time.Second, time.Minute

// errRetired is the outcome of a try at a target that is none any more.
var errRetired = errors.New("the target's site has left, or is at another address")

// learn follows the members as a target tells them, as long as it is a site, until ctx
// ends. All sites are followed: a site that was cut off, or written off, knows nothing of
// that.
func (c *Client) learn(ctx context.Context, t *target) {
	for ctx.Err() == nil {
		again := c.cfg.ProbeInterval
		if t.name() != "" && t.state().Reach == health.Up {
			switch status.Code(c.watch(ctx, t)) {
			case codes.Unimplemented:
				// The build of the site has lists, but no watch.
				c.list(ctx, t)
				again = listTime
			case codes.PermissionDenied, codes.Unauthenticated:
				again = deniedTime
			}
		}
		wait, stop := context.WithTimeout(ctx, time.Duration((0.75+c.cfg.Random()/2)*float64(again)))
		<-wait.Done()
		stop()
	}
}

// watch learns from a watch at a site until it ends or falls silent.
func (c *Client) watch(ctx context.Context, t *target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(seats.Silence, cancel)
	defer silent.Stop()
	stream, err := samyav1.NewClusterServiceClient(t.conn).WatchMembers(ctx, &samyav1.WatchMembersRequest{})
	if err != nil {
		return err
	}
	for {
		told, err := stream.Recv()
		if err != nil {
			return err
		}
		silent.Reset(seats.Silence)
		c.told(told.GetList())
	}
}

// list learns from a list of a site.
func (c *Client) list(ctx context.Context, t *target) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	resp := &samyav1.ListMembersResponse{}
	if fate, err := mux.Invoke(ctx, t.conn, samyav1.ClusterService_ListMembers_FullMethodName, &samyav1.ListMembersRequest{}, resp); fate == mux.Answered && err == nil {
		c.told(resp)
	}
}

// told learns from a list, nil for a sign of life, and has the targets follow.
func (c *Client) told(list *samyav1.ListMembersResponse) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.choosing.Lock()
	c.seats = c.seats.Learn(list)
	known, all := c.seats, slices.Clone(c.targets)
	c.choosing.Unlock()
	for _, t := range all {
		t.outlive(known.Term)
	}
	c.choosing.Lock()
	added, dropped := c.regroup()
	c.choosing.Unlock()
	for _, t := range added {
		c.follow(t)
	}
	for _, t := range dropped {
		if t.moved {
			t.abandon()
			// A connection that hangs takes seconds to close.
			c.loops.Go(func() { _ = t.close() })
			continue
		}
		t.retire()
	}
	c.rerank()
}

// took has the other targets be the site no more that a target runs since a take-over. It
// reports false if another target that answers runs the site since a later take-over.
func (c *Client) took(by *target, site string, term int64) bool {
	c.choosing.Lock()
	others := slices.Clone(c.targets)
	c.choosing.Unlock()
	others = slices.DeleteFunc(others, func(t *target) bool { return t == by })
	for _, t := range others {
		if t.ran(site) > term {
			return false
		}
	}
	for _, t := range others {
		t.outlive(func(other string) int64 {
			if other != site {
				return 0
			}
			return term
		})
	}
	return true
}

// search has the targets that are down dialled, until ctx ends.
func (c *Client) search(ctx context.Context) {
	for ctx.Err() == nil {
		next := redialEvery
		for _, cand := range c.ranking.Load().order {
			if cand.rank == silent {
				next = min(next, cand.target.redial(time.Now()))
			}
		}
		sleep(ctx, next)
	}
}

// sleep waits for d, and reports false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// regroup has the targets that were learned be the sites that the list of the members
// names, but for sites that targets of the configuration reach. It returns the targets
// that are new and those that are no more.
func (c *Client) regroup() (added, dropped []*target) {
	want, complete := c.wanted()
	moved := map[string]bool{}
	c.retired = slices.DeleteFunc(c.retired, func(t *target) bool { return t.idle() })
	c.targets = slices.DeleteFunc(c.targets, func(t *target) bool {
		if t.learned == "" {
			return false
		}
		at, ok := want[t.learned]
		if ok && at == t.Target {
			delete(want, t.learned)
			return false
		}
		t.moved = ok && at.Address != t.Address
		moved[t.learned] = t.moved
		dropped = append(dropped, t)
		return true
	})
	c.retired = append(c.retired, dropped...)
	for _, m := range c.seats.List().GetMembers() {
		at, ok := want[m.GetName()]
		if !ok || !complete && !moved[m.GetName()] || len(c.targets) >= maxTargets {
			continue
		}
		// An address that makes no connection is of no use.
		if t, err := c.connect(at); err == nil {
			t.learned = m.GetName()
			added = append(added, t)
			c.targets = append(c.targets, t)
		}
	}
	return added, dropped
}

// wanted returns the sites that are to be learned targets, by name. complete reports
// whether all targets of the configuration have told what they are, as far as they answer:
// until then a site might become a target twice.
func (c *Client) wanted() (want map[string]Target, complete bool) {
	want, complete = map[string]Target{}, true
	for _, m := range c.seats.List().GetMembers() {
		switch m.GetState() {
		case samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING:
			if at := m.GetAddress(); at != "" && (c.cfg.Token == nil || c.cfg.Security != nil || tlsconf.Loopback(at)) {
				want[m.GetName()] = Target{Address: at, Region: m.GetRegion()}
			}
		}
	}
	for _, t := range c.targets {
		if t.learned != "" {
			continue
		}
		maps.DeleteFunc(want, func(_ string, at Target) bool { return at.Address == t.Address })
		switch site, front, known := t.kind(); {
		case front:
			// App managers know the sites, and route to them.
			return nil, true
		case site != "":
			delete(want, site)
		case !known:
			complete = false
		}
	}
	return want, complete
}

// kind returns the site that the target was last, or that it was an app manager. known is
// false for a target that may still tell.
func (t *target) kind() (site string, front, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.was, t.front, t.known || t.health.Reach == health.Down
}

// idle reports whether no call is under way.
func (t *target) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls == 0
}

// members returns what sites told of the members.
func (c *Client) members() *seats.Book {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	return c.seats
}

// home returns the site that answers for what a site had; the site itself if it is not
// known to have left. lost reports that nobody does.
func (c *Client) home(site string) (home string, lost bool) {
	if site == "" {
		return "", false
	}
	return c.members().Home(site)
}

// heir returns the site that a refusal names as the one that has the lease: LeaseMoved at
// the site from.
func (c *Client) heir(e *apierr.Error, from string) string {
	if e.Site != "" && e.Site != from {
		return e.Site
	}
	return c.members().Heir(from)
}
