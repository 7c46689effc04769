package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/site/rescue"
)

// errUnheard says that a member has not heard of the loss.
var errUnheard = errors.New("to hear that the site was written off")

// lost returns the seat of the site, which must have been written off, once all members
// have told that they remember no later data of it.
func (s *salvage) lost(ctx context.Context) (*httpapi.Member, error) {
	for {
		seat, err := s.ask(ctx)
		_, stale := errors.AsType[*rescue.StaleError](err)
		_, unknown := errors.AsType[*rescue.UnknownError](err)
		_, hinted := errors.AsType[*hintError](err)
		switch {
		case err == nil:
			return seat, nil
		case stale:
			return nil, &hintError{err, "find the latest directory of the site; or count what is in use: samya entity reconcile"}
		case unknown:
			return nil, &hintError{err, "count what is in use instead: samya entity reconcile"}
		case hinted:
			return nil, err
		}
		if err := s.waits(ctx, err); err != nil {
			return nil, err
		}
	}
}

// ask asks all members once.
func (s *salvage) ask(ctx context.Context) (*httpapi.Member, error) {
	var all httpapi.Members
	var sites httpapi.Sites
	err := within(ctx, 0, func(ctx context.Context) (err error) {
		if sites, err = s.client.ListSites(ctx); err == nil {
			all, err = s.client.ListMembers(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at the members: %w", err)
	}
	if sites.Cluster != s.data.Cluster {
		return nil, &hintError{fmt.Errorf("the directory is of cluster %q, and %s serves cluster %q; nothing was changed", s.data.Cluster, s.t.addr, sites.Cluster), "name an app manager of the cluster with --addr"}
	}
	seat := seatOf(&all, s.done.Site)
	switch {
	case seat == nil:
		return nil, &hintError{fmt.Errorf("the cluster has no site %s; nothing was changed", s.done.Site), "see which there are with: samya member list"}
	case seat.State != "lost":
		return nil, &hintError{fmt.Errorf("%s was not written off: it is %s; nothing was changed", seat.Name, seat.State), "start the site on its directory instead"}
	}
	var told []rescue.Memory
	for i := range all.Members {
		m := &all.Members[i]
		if m.State != "member" && m.State != "draining" {
			continue
		}
		known, err := s.memory(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		told = append(told, known)
	}
	mine := rescue.Mark{Incarnation: uint64(s.data.Incarnation), Commit: uint64(s.data.Restored.Commits)}
	return seat, rescue.Latest(mine, told)
}

// memory is what a member remembers of the site's data. Once the member knows of the loss,
// it hears nothing more of the site.
func (s *salvage) memory(ctx context.Context, member string) (known rescue.Memory, err error) {
	known.Member = member
	var all httpapi.Members
	err = within(ctx, 0, func(ctx context.Context) (err error) {
		all, err = s.client.MembersAt(ctx, member)
		return err
	})
	if err != nil {
		return known, fmt.Errorf("ask %s: %w", member, err)
	}
	seat := seatOf(&all, s.done.Site)
	if seat == nil || seat.State != "lost" {
		return known, fmt.Errorf("%s %w", member, errUnheard)
	}
	if r := seat.Remembered; r != nil {
		known.Commit, known.Served = r.Commit, r.Served
		if known.Incarnation, err = strconv.ParseUint(r.Incarnation, 16, 64); err != nil {
			return known, &hintError{fmt.Errorf("%s tells an incarnation that is none: %w", member, err), "use a samya of the cluster's version"}
		}
	}
	return known, nil
}
