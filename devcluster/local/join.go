package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/httpapi"
)

// grow notes the wanted sites that the cluster has not, to join it. It refuses a
// configuration that lacks a site, or has one at another address while others join.
func (a *applier) grow(wanted []Process, members []string) error {
	has := a.state.sites()
	for _, site := range has {
		if !slices.Contains(members, site) {
			return fmt.Errorf("%s are wanted, the cluster has %s: %w", strings.Join(members, ", "), strings.Join(has, ", "), ErrMembers)
		}
	}
	added := slices.DeleteFunc(members, func(m string) bool { return slices.Contains(has, m) })
	if len(added) == 0 {
		return nil
	}
	for _, p := range wanted {
		if r, known := a.state.Processes[p.Name]; known && p.Kind == KindSite && r.GRPC != p.GRPC {
			return fmt.Errorf("%s would move from %s to %s: %w", p.Name, r.GRPC, p.GRPC, ErrMembers)
		}
	}
	if !slices.ContainsFunc(wanted, func(p Process) bool { return p.Kind == KindAppManager }) {
		return fmt.Errorf("%w: regions: %s cannot join without an app manager", ErrConfig, strings.Join(added, ", "))
	}
	a.state.Joining = slices.Sorted(slices.Values(append(a.state.Joining, added...)))
	return nil
}

// startJoining starts the sites that join. A site that is a member already may be needed
// by others before they serve.
func (a *applier) startJoining(wanted []Process) error {
	for _, p := range wanted {
		if !slices.Contains(a.state.Joining, p.Name) || a.state.Runs(p.Name) {
			continue
		}
		if err := a.start(p); err != nil {
			return err
		}
		a.tell(p.Name, "joining")
	}
	return nil
}

// join gives the sites that join a seat, one after the other, and waits until each
// serves.
func (a *applier) join(ctx context.Context, wanted []Process) error {
	for _, p := range wanted {
		if !slices.Contains(a.state.Joining, p.Name) {
			continue
		}
		if err := a.seat(ctx, wanted, p.Name); err != nil {
			return err
		}
		if err := a.ready(ctx, p); err != nil {
			return err
		}
		a.state.Joining = slices.DeleteFunc(a.state.Joining, func(site string) bool { return site == p.Name })
		a.state.Joined = slices.Sorted(slices.Values(append(a.state.Joined, p.Name)))
		if err := a.state.write(a.cfg.Dir); err != nil {
			return err
		}
		a.tell(p.Name, "joined")
	}
	return nil
}

// seat asks the app managers in turn to give a site a seat, until one has done it.
func (a *applier) seat(ctx context.Context, wanted []Process, site string) error {
	last := errors.New("no answer yet")
	err := poll(ctx, func() bool {
		for _, p := range wanted {
			if p.Kind != KindAppManager || ctx.Err() != nil {
				continue
			}
			client, err := httpapi.New(a.ask.scheme+"://"+p.HTTP, a.ask.client.Transport)
			if err == nil {
				_, err = client.AddMember(ctx, site, "")
			}
			if err == nil {
				return true
			}
			if ctx.Err() == nil {
				last = err
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("give %s a seat (%w): %w", site, last, err)
	}
	return nil
}
