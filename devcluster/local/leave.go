package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/internal/httpapi"
)

// startLeaving starts the sites that leave and do not run: they have to hand over their
// tokens. A site that has lost its data stays ended.
func (a *applier) startLeaving(leaving []Process) error {
	for _, p := range leaving {
		if slices.Contains(a.state.Lost, p.site()) || a.state.Runs(p.Name) {
			continue
		}
		if err := a.start(p); err != nil {
			return err
		}
	}
	return nil
}

// leave has sites leave in turn: each stops once it is out, and its data and its
// log are set aside.
func (a *applier) leave(ctx context.Context, wanted, leaving []Process) error {
	for _, p := range leaving {
		if !p.first() {
			continue
		}
		nodes := slices.DeleteFunc(slices.Clone(leaving), func(o Process) bool { return o.site() != p.Name })
		lost := slices.Contains(a.state.Lost, p.Name)
		if lost {
			if err := a.stopAll(ctx, nodes); err != nil {
				return err
			}
		}
		a.tell(p.Name, "leaving")
		if err := a.out(ctx, wanted, p, lost); err != nil {
			return err
		}
		if err := a.stopAll(ctx, nodes); err != nil {
			return err
		}
		if err := a.setAside(p.Name, nodes); err != nil {
			return err
		}
		for _, node := range nodes {
			a.tell(node.Name, "left")
		}
	}
	return nil
}

// stopAll stops the nodes of a site. The active node is not the last: nothing takes over.
func (a *applier) stopAll(ctx context.Context, nodes []Process) error {
	var group errgroup.Group
	for _, p := range nodes {
		r := a.state.Processes[p.Name]
		group.Go(func() error { return r.stop(ctx, a.state.Boot) })
	}
	return group.Wait()
}

// out asks for a site to leave, and waits until it is out.
func (a *applier) out(ctx context.Context, wanted []Process, p Process, lost bool) error {
	err := a.asking(ctx, wanted, func(client *httpapi.Client) (bool, error) {
		all, err := client.ListMembers(ctx)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(all.Members, func(m httpapi.Member) bool { return m.Name == p.Name })
		if i < 0 {
			// A site that was to join may never have got a seat.
			return slices.Contains(a.state.Joining, p.Name), errors.New("the cluster does not know the site")
		}
		switch m := &all.Members[i]; {
		case m.State == "gone":
			return true, nil
		case m.State == "lost":
			a.waits(p.Name, all.WaitsFor)
			return all.Behind == 0, fmt.Errorf("it waits for %s", all.WaitsFor)
		case m.State == "joining":
			_, err = client.RemoveMember(ctx, p.Name, false, "")
		case lost:
			_, err = client.RemoveMember(ctx, p.Name, true, "")
		case m.State == "draining":
			a.waits(p.Name, m.WaitsFor)
			err = fmt.Errorf("it waits for %s", m.WaitsFor)
		default:
			_, err = client.DrainMember(ctx, p.Name, heir(wanted, p), "")
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("have %s leave: %w", p.Name, err)
	}
	return nil
}

// heir is the site that takes over from a site that leaves: of the same region, if
// possible.
func heir(wanted []Process, p Process) string {
	first := ""
	for _, w := range wanted {
		switch {
		case !w.first():
		case w.Region == p.Region:
			return w.Name
		case first == "":
			first = w.Name
		}
	}
	return first
}

// setAside moves the data and the logs of a site that has left, and notes that it has.
func (a *applier) setAside(site string, nodes []Process) error {
	left := filepath.Join(a.cfg.Dir, leftDir)
	if err := os.MkdirAll(left, 0o700); err != nil {
		return fmt.Errorf("set the data of %s aside: %w", site, err)
	}
	for _, p := range nodes {
		for from, to := range map[string]string{a.cfg.data(p.Name): p.Name, logOf(a.cfg.Dir, p.Name): p.Name + ".log"} {
			if err := os.Rename(from, filepath.Join(left, to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("set the data of %s aside: %w", site, err)
			}
		}
		delete(a.state.Processes, p.Name)
	}
	one := []string{site}
	a.state.Joined, a.state.Joining = without(a.state.Joined, one), without(a.state.Joining, one)
	a.state.Leaving, a.state.Lost = without(a.state.Leaving, one), without(a.state.Lost, one)
	a.state.Gone = slices.Sorted(slices.Values(append(a.state.Gone, site)))
	return a.state.write(a.cfg.Dir)
}
