package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/rescue"
)

// rescuers is how many entities are rescued at a time.
const rescuers = 16

// errUnapplied says that a site may not have applied a rescue.
var errUnapplied = errors.New("to apply the rescue")

// round rescues the entities that are not settled, in steps: those of a step are rescued
// side by side, and the next step waits for them. It reports whether all are settled.
func (s *salvage) round(ctx context.Context) (ended bool, err error) {
	all, err := s.list(ctx)
	if err != nil {
		return false, s.waits(ctx, err)
	}
	s.done.Entities = len(all)
	counter := s.t.program.counter()
	defer counter.end()
	for _, step := range s.steps(all) {
		var problem error
		var mu sync.Mutex
		var working sync.WaitGroup
		todo := make(chan httpapi.Entity)
		for range rescuers {
			working.Go(func() {
				for e := range todo {
					r, err := s.entity(ctx, e)
					mu.Lock()
					s.done.Returned += r.Returned
					if err == nil {
						s.settled[e.Generation] = true
						counter.tell("%d of %d entities", len(s.settled), len(all))
					}
					problem = cmp.Or(problem, err)
					mu.Unlock()
				}
			})
		}
		for _, e := range step {
			todo <- e
		}
		close(todo)
		working.Wait()
		if problem != nil {
			return false, s.waits(ctx, problem)
		}
	}
	return true, nil
}

// steps are the entities that are not settled, in the order that keeps all limits: parts
// above zero from the bottom up, then parts below zero from the top down.
func (s *salvage) steps(all []httpapi.Entity) [][]httpapi.Entity {
	parents := make(map[string]string, len(all))
	for _, e := range all {
		parents[e.Name] = e.Parent
	}
	place := func(e httpapi.Entity) int {
		depth := 0
		for at := e.Parent; at != "" && depth < len(all); at = parents[at] {
			depth++
		}
		if s.estate(e).Net < 0 {
			return depth + 1
		}
		return -depth
	}
	all = slices.DeleteFunc(slices.Clone(all), func(e httpapi.Entity) bool { return s.settled[e.Generation] })
	slices.SortStableFunc(all, func(a, b httpapi.Entity) int { return cmp.Compare(place(a), place(b)) })
	var steps [][]httpapi.Entity
	for i, e := range all {
		if i == 0 || place(all[i-1]) != place(e) {
			steps = append(steps, nil)
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], e)
	}
	return steps
}

// estate is what the site held of an entity: nothing if its data does not know the entity.
func (s *salvage) estate(e httpapi.Entity) *rescue.Estate {
	if known := s.estates[e.Generation]; known != nil {
		return known
	}
	return &rescue.Estate{Name: e.Name, Generation: e.Generation}
}

// entity rescues an entity.
func (s *salvage) entity(ctx context.Context, e httpapi.Entity) (r httpapi.Rescued, err error) {
	held := s.estate(e)
	told := httpapi.Estate{Site: s.done.Site, Generation: e.Generation, Net: int64(held.Net), Held: int64(held.Held)}
	for _, l := range held.Leased {
		told.Leases = append(told.Leases, httpapi.HeldLeases{Tokens: int64(l.Tokens), UntilMS: l.Until})
	}
	err = within(ctx, 0, func(ctx context.Context) error {
		r, err = s.client.RescueEntity(ctx, e.Name, told)
		return err
	})
	refusal, _ := errors.AsType[*apierr.Error](err)
	switch {
	case refusal != nil && refusal.Reason == apierr.EntityNotFound:
		// It was deleted.
		return r, nil
	case err == nil && e.Parent != "" && len(r.MissingSites) > 0:
		// An entity above it must not be rescued before.
		return r, fmt.Errorf("%s: %s %w", e.Name, strings.Join(r.MissingSites, ", "), errUnapplied)
	}
	return r, err
}

// waits lets a while pass after a refusal that another try may not meet; it returns any other
// error, and why the wait is over.
func (s *salvage) waits(ctx context.Context, err error) error {
	refusal, refused := errors.AsType[*apierr.Error](err)
	if refused {
		switch refusal.Reason {
		case apierr.MembersChanging, apierr.VersionMismatch, apierr.SiteUnavailable, apierr.Overloaded, apierr.RateLimited, apierr.QueueFull,
			apierr.ShuttingDown, apierr.DeadlineExceeded, apierr.OutcomeUnknown, apierr.SiteDraining, apierr.NoQuorum, apierr.Canceled:
		default:
			return fmt.Errorf("rescue %s: %w", s.done.Site, err)
		}
	}
	what := err.Error()
	if refused {
		what, _ = strings.CutSuffix(refusal.Message, "; nothing was done")
	}
	if what != s.last {
		s.last = what
		if err := s.t.say(fmt.Sprintf("%s: %s (%s)", s.done.Site, what, time.Since(s.began).Round(time.Second))); err != nil {
			return err
		}
	}
	if wan.Wait(ctx, memberPause) == nil {
		return nil
	}
	again := "nothing comes back twice; go on with: samya site rescue " + s.dir
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return &hintError{errInterrupted, again}
	}
	return &hintError{fmt.Errorf("after %v %s is not rescued: %s", s.timeout.Round(time.Second), s.done.Site, s.last), again}
}
