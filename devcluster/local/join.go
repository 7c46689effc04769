package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/httpapi"
)

// reseat notes the wanted sites that the cluster has not, to join it, and the sites that are
// not wanted, to leave. It refuses a configuration that lacks a site that was not told to
// leave, or has one at another address while others change.
func (a *applier) reseat() error {
	has := without(a.state.sites(), a.state.Leaving)
	for _, site := range slices.Concat(a.cfg.Leave, a.cfg.Lost) {
		if !slices.Contains(a.state.sites(), site) && !slices.Contains(a.state.Gone, site) {
			return fmt.Errorf("%w: leave, lost: %s is no site of the cluster", ErrConfig, site)
		}
	}
	l := a.cfg.layout(&a.state)
	if len(l.short) > 0 {
		return fmt.Errorf("%w: regions: %s: a region has at most %d sites ever, %d of 2 nodes and %d of 3, and those that have left count",
			ErrConfig, strings.Join(l.short, ", "), MaxPerRegion, mostSites(2), mostSites(3))
	}
	if n := len(a.cfg.places(&a.state)); n > MaxRegions {
		return fmt.Errorf("%w: regions: %d with those that sites have left, must be at most %d", ErrConfig, n, MaxRegions)
	}
	var members []string
	for _, p := range l.wanted {
		if p.first() {
			members = append(members, p.Name)
		}
	}
	told := slices.Concat(a.cfg.Leave, a.cfg.Lost)
	surplus := without(has, members)
	if len(without(surplus, told)) > 0 && !a.cfg.Drain {
		return fmt.Errorf("%s are wanted, the cluster has %s: %w", strings.Join(members, ", "), strings.Join(has, ", "), ErrMembers)
	}
	a.state.Leaving = slices.Sorted(slices.Values(append(a.state.Leaving, surplus...)))
	for _, site := range a.cfg.Lost {
		if slices.Contains(a.state.Leaving, site) && !slices.Contains(a.state.Lost, site) {
			a.state.Lost = append(a.state.Lost, site)
		}
	}
	added := without(members, has)
	a.state.Joining = slices.Sorted(slices.Values(append(a.state.Joining, added...)))
	return a.fits(added)
}

// fits refuses a change of the sites that would move another site, or that nobody can ask
// for.
func (a *applier) fits(added []string) error {
	if len(added)+len(a.state.Leaving) == 0 {
		return nil
	}
	l := a.cfg.layout(&a.state)
	for _, p := range slices.Concat(l.wanted, l.leaving) {
		if r, known := a.state.Processes[p.Name]; known && p.Kind == KindSite && r.GRPC != p.GRPC {
			return fmt.Errorf("%s would move from %s to %s: %w", p.Name, r.GRPC, p.GRPC, ErrMembers)
		}
	}
	if !slices.ContainsFunc(l.wanted, func(p Process) bool { return p.Kind == KindAppManager }) {
		return fmt.Errorf("%w: regions: %s cannot join or leave without an app manager", ErrConfig, strings.Join(slices.Concat(added, a.state.Leaving), ", "))
	}
	return nil
}

// startJoining starts the sites that join. A site that is a member already may be needed
// by others before they serve.
func (a *applier) startJoining(wanted []Process) error {
	for _, p := range wanted {
		if p.Kind != KindSite || !slices.Contains(a.state.Joining, p.site()) || a.state.Runs(p.Name) {
			continue
		}
		if err := a.start(p); err != nil {
			return err
		}
		a.tell(p.Name, "joining")
	}
	return nil
}

// join gives the sites that join a seat, one after the other, and waits until each is a
// member and serves.
func (a *applier) join(ctx context.Context, wanted []Process) error {
	for _, p := range wanted {
		if !slices.Contains(a.state.Joining, p.Name) {
			continue
		}
		if err := a.seat(ctx, wanted, p.Name); err != nil {
			return err
		}
		if err := a.admitted(ctx, wanted, p.Name); err != nil {
			return err
		}
		var nodes []Process
		for _, w := range wanted {
			if w.Kind == KindSite && w.site() == p.Name {
				nodes = append(nodes, w)
			}
		}
		if err := a.startAll(ctx, nil, nodes); err != nil {
			return err
		}
		a.state.Joining = slices.DeleteFunc(a.state.Joining, func(site string) bool { return site == p.Name })
		a.state.Joined = slices.Sorted(slices.Values(append(a.state.Joined, p.Name)))
		if err := a.state.write(a.cfg.Dir); err != nil {
			return err
		}
		for _, node := range nodes {
			a.tell(node.Name, "joined")
		}
	}
	return nil
}

// seat asks for a seat for a site, until an app manager has done it.
func (a *applier) seat(ctx context.Context, wanted []Process, site string) error {
	err := a.asking(ctx, wanted, func(client *httpapi.Client) (bool, error) {
		_, err := client.AddMember(ctx, site, "")
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("give %s a seat: %w", site, err)
	}
	return nil
}

// admitted waits until a site is a member and all entities have its voters. It tells what
// the site waits for.
func (a *applier) admitted(ctx context.Context, wanted []Process, site string) error {
	err := a.asking(ctx, wanted, func(client *httpapi.Client) (bool, error) {
		all, err := client.ListMembers(ctx)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(all.Members, func(m httpapi.Member) bool { return m.Name == site })
		if i < 0 {
			return false, errors.New("the cluster does not know the site")
		}
		waits := all.JoinWaits(&all.Members[i])
		a.waits(site, waits)
		if waits == "" && all.Members[i].State == "member" {
			return true, nil
		}
		return false, fmt.Errorf("it is %s, and waits for %s", all.Members[i].State, waits)
	})
	if err != nil {
		return fmt.Errorf("have %s join: %w", site, err)
	}
	return nil
}

// asking asks the app managers in turn until an app manager has done the task. It fails
// with the last obstacle.
func (a *applier) asking(ctx context.Context, wanted []Process, ask func(*httpapi.Client) (done bool, err error)) error {
	last := errors.New("no answer yet")
	err := poll(ctx, func() bool {
		for _, p := range wanted {
			if p.Kind != KindAppManager || ctx.Err() != nil {
				continue
			}
			client, err := httpapi.New(a.ask.scheme+"://"+p.HTTP, a.ask.client.Transport)
			done := false
			if err == nil {
				done, err = ask(client)
			}
			if done {
				return true
			}
			if err != nil && ctx.Err() == nil {
				last = err
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("%w: %w", last, err)
	}
	return nil
}
