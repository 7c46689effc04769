package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/wan"
)

// memberPause is the time between two looks at the members.
const memberPause = 500 * time.Millisecond

// memberChange is a command that changes the members and waits until that is done.
type memberChange struct {
	t      *talker
	client *httpapi.Client
	site   string
	// again is the command that goes on with the change.
	again   string
	began   time.Time
	timeout time.Duration
	// version is that of the members after what was asked for last. A site that tells an
	// earlier version has not heard of it.
	version uint64
	// last is the progress printed last.
	last string
}

func (t *talker) memberChange(client *httpapi.Client, site, again string, timeout time.Duration) *memberChange {
	return &memberChange{t: t, client: client, site: site, again: again, began: time.Now(), timeout: timeout}
}

// of is the part of the change that is about another site.
func (c *memberChange) of(site string) *memberChange {
	other := *c
	other.site, other.last = site, ""
	return &other
}

// ask asks for the change. While another change of the members is under way it waits, and
// asks again.
func (c *memberChange) ask(
	ctx context.Context, change func(context.Context) (httpapi.ChangedMember, error),
) (changed httpapi.ChangedMember, err error) {
	bounded, cancel := context.WithDeadline(ctx, c.began.Add(c.timeout))
	defer cancel()
	for {
		err = within(ctx, 0, func(ctx context.Context) error {
			changed, err = change(ctx)
			return err
		})
		refusal, _ := errors.AsType[*apierr.Error](err)
		if refusal == nil || refusal.Reason != apierr.MembersChanging {
			if err != nil && doubtful(err) {
				err = &hintError{err, "find out, or go on, with: " + c.again}
			}
			c.version = max(c.version, changed.Version)
			return changed, err
		}
		if err := c.waits(refusal.Message); err != nil {
			return changed, err
		}
		if wan.Wait(bounded, memberPause) != nil {
			return changed, c.over(ctx)
		}
	}
}

// await looks at the site until it is as wanted, and prints what it waits for, each time
// that changes. wanted tells what the site waits for, or why it never will be as wanted.
func (c *memberChange) await(ctx context.Context, wanted func(all *httpapi.Members, m *httpapi.Member) (waits string, err error)) (httpapi.Member, error) {
	bounded, cancel := context.WithDeadline(ctx, c.began.Add(c.timeout))
	defer cancel()
	for {
		waits := ""
		all, err := c.client.ListMembers(bounded)
		m := seatOf(&all, c.site)
		switch {
		case err != nil && bounded.Err() == nil:
			waits = "an answer: " + err.Error()
		case err == nil && m == nil:
			waits = all.AnsweredBy + " to hear of its seat"
		case err == nil && all.Version < c.version:
			waits = all.AnsweredBy + " to hear of the change"
		case err == nil:
			if waits, err = wanted(&all, m); err != nil || waits == "" {
				return *m, err
			}
		}
		if waits != "" {
			if err := c.waits(waits); err != nil {
				return httpapi.Member{}, err
			}
		}
		if wan.Wait(bounded, memberPause) != nil {
			return httpapi.Member{}, c.over(ctx)
		}
	}
}

// waits prints what the site waits for, unless that was printed last.
func (c *memberChange) waits(what string) error {
	if what == c.last {
		return nil
	}
	c.last = what
	return c.t.say(waitsLine(c.site, what, c.began))
}

// waitsLine tells what a site waits for, and since when.
func waitsLine(site, waits string, began time.Time) string {
	return fmt.Sprintf("%s waits for %s (%s)", site, waits, time.Since(began).Round(time.Second))
}

// over is why the wait ended early.
func (c *memberChange) over(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return &hintError{errInterrupted, "what is decided goes on without this command; wait again with: " + c.again}
	}
	return &hintError{
		fmt.Errorf("after %v %s still waits for %s", c.timeout, c.site, cmp.Or(c.last, "an answer")),
		"it goes on without this command; wait again with: " + c.again,
	}
}

// seatOf is the seat of a site; nil if it has none.
func seatOf(all *httpapi.Members, site string) *httpapi.Member {
	i := slices.IndexFunc(all.Members, func(m httpapi.Member) bool { return m.Name == site })
	if i < 0 {
		return nil
	}
	return &all.Members[i]
}

// isMember waits until a site is a member, and all entities have its voters.
func isMember(all *httpapi.Members, m *httpapi.Member) (string, error) {
	switch m.State {
	case "member", "joining":
		return all.JoinWaits(m), nil
	}
	return "", used(m)
}

// used says that a site does not become a member any more.
func used(m *httpapi.Member) error {
	switch m.State {
	case "gone":
		return &hintError{fmt.Errorf("%s has left the cluster", m.Name), "a name is never used twice: choose another name"}
	case "lost":
		return &hintError{fmt.Errorf("%s was written off", m.Name), "a name is never used twice: choose another name"}
	}
	return &hintError{fmt.Errorf("%s is %s", m.Name, m.State), "end its drain with: samya member drain " + m.Name + " --cancel"}
}

// isGone waits until a site that drains has left.
func isGone(_ *httpapi.Members, m *httpapi.Member) (string, error) {
	switch m.State {
	case "gone":
		return "", nil
	case "draining":
		return cmp.Or(m.WaitsFor, "the members to retire it"), nil
	case "lost":
		return "", fmt.Errorf("%s was written off while it drained", m.Name)
	}
	return "", fmt.Errorf("the drain of %s was ended by somebody: it is a %s", m.Name, m.State)
}

// isLost waits until all entities go on without a site that was written off.
func isLost(all *httpapi.Members, m *httpapi.Member) (string, error) {
	if m.State != "lost" {
		return all.AnsweredBy + " to hear of it", nil
	}
	return cmp.Or(m.WaitsFor, all.WaitsFor), nil
}

// say prints a line of progress, unless the result is to be JSON.
func (t *talker) say(line string) error {
	if t.json {
		return nil
	}
	if _, err := fmt.Fprintln(t.program.stdout, line); err != nil {
		return fmt.Errorf("print the progress: %w", err)
	}
	return nil
}
