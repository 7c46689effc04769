package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site/rescue"
	"github.com/samya-db/samya/site/store"
)

// siteRescue is `samya site rescue`.
func (p *program) siteRescue() *cobra.Command {
	var yes bool
	var timeout time.Duration
	var t *talker
	cmd := &cobra.Command{
		Use:   "rescue DIR",
		Short: "Bring back what a lost site held, by its data directory",
		Long: `Brings back what a site held that was written off, if its data directory turns up
after all. Run it where the directory is; the site must not run, there or on a copy.

The directory tells how many tokens are out through the site: other sites take them
over, so they may be released anywhere. The rest of what was written off is
available again. Leases of the site cannot be renewed any more; their tokens come
back once they have ended. An entity that was reconciled since is left as it is:
the count has brought all back.

The directory must be the latest that any member remembers, and all members must
answer. Before anything is brought back the directory is marked: no site starts on
it again. Nothing comes back twice: an interrupted command is repeated.`,
		Example: "  samya site rescue /var/lib/samya --addr https://am.example.com:8080",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			s := &salvage{t: t, client: client, dir: args[0], began: time.Now(), timeout: timeout, settled: make(map[uint64]bool)}
			return interrupted(cmd.Context(), s.run(cmd.Context(), yes))
		},
	}
	t = p.talk(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, yesHelp)
	cmd.Flags().DurationVar(&timeout, "timeout", leaveTimeout, timeoutHelp)
	return cmd
}

// salvage is a rescue under way.
type salvage struct {
	t      *talker
	client *httpapi.Client
	dir    string
	// data is what the directory holds, estates that of each entity by generation.
	data    store.Examination
	estates map[uint64]*rescue.Estate
	began   time.Time
	timeout time.Duration
	// settled are the entities that are rescued, by generation.
	settled map[uint64]bool
	done    salvaged
	// last is what the command waited for last.
	last string
}

// salvaged is the result of a rescue.
type salvaged struct {
	Site string `json:"site"`
	// Entities is how many entities were looked at, Returned how many tokens are available
	// again, of those that this command has rescued.
	Entities int   `json:"entities"`
	Returned int64 `json:"returned"`
	// Leases is how many leases may not have ended, and LeasedUntil when the last one does,
	// in milliseconds since the Unix epoch; 0 for none.
	Leases      int   `json:"leases"`
	LeasedUntil int64 `json:"leased_until_ms"`
	// Before says that the site was rescued before.
	Before bool `json:"before"`
}

// clockSkew is by how many milliseconds the clocks of sites may differ, by default.
const clockSkew = 10_000

// errNotRead says that a directory cannot be rescued.
var errNotRead = errors.New("the directory cannot be read; nothing was changed")

// run rescues the site.
func (s *salvage) run(ctx context.Context, yes bool) (err error) {
	release, err := store.Hold(s.dir)
	if err != nil {
		return fmt.Errorf("hold the directory: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	if s.data, err = store.Examine(s.dir); err == nil && s.data.Refused != nil {
		err = fmt.Errorf("%w: %w", errNotRead, s.data.Refused)
	}
	if err != nil {
		return &hintError{err, "see what is wrong with: samya doctor --data " + s.dir}
	}
	s.done.Site = string(s.data.Site)
	ctx, cancel := context.WithDeadline(ctx, s.began.Add(s.timeout))
	defer cancel()
	seat, err := s.lost(ctx)
	if err != nil {
		return err
	}
	s.done.Before = seat.Rescued
	if !s.done.Before {
		if err := s.sure(yes); err != nil {
			return err
		}
	}
	if err := store.MarkRescued(s.dir); err != nil {
		return err
	}
	if !s.done.Before {
		if err := s.rescue(ctx); err != nil {
			return err
		}
	}
	return s.t.print(s.done, s.tell)
}

// tell prints the result in words.
func (s *salvage) tell(w io.Writer) {
	if s.done.Before {
		row(w, s.done.Site+" was rescued before; nothing was changed")
		return
	}
	row(w, fmt.Sprintf("%s is rescued: %d tokens of %d entities are available again", s.done.Site, s.done.Returned, s.done.Entities))
	if s.done.Leases > 0 {
		row(w, fmt.Sprintf("%d leases may not have ended: their tokens come back by %s", s.done.Leases,
			time.UnixMilli(s.done.LeasedUntil+2*clockSkew).UTC().Format("2006-01-02 15:04:05 UTC")))
	}
}

// sure asks whether to go on.
func (s *salvage) sure(yes bool) error {
	if yes {
		return nil
	}
	return s.t.confirm(
		fmt.Sprintf("Bring back what %s held, by %s at commit %d? The site must not run, nor any copy of this directory. No site starts on it again. [y/N] ",
			s.data.Site, s.dir, s.data.Restored.Commits),
		"pass --yes to go on without being asked", "nothing was changed",
	)
}

// rescue rescues all entities, and notes that.
func (s *salvage) rescue(ctx context.Context) error {
	s.estates = rescue.Estates(&s.data.Restored, time.Now().UnixMilli(), clockSkew)
	for _, e := range s.estates {
		s.done.Leases += e.Leases
		for _, part := range e.Leased {
			if e.Leases > 0 {
				s.done.LeasedUntil = max(s.done.LeasedUntil, part.Until)
			}
		}
	}
	for {
		ended, err := s.round(ctx)
		if err != nil {
			return err
		}
		if ended {
			err := within(ctx, 0, func(ctx context.Context) error {
				_, err := s.client.RescueMember(ctx, s.done.Site, "")
				return err
			})
			if err == nil {
				return nil
			}
			if err := s.waits(ctx, err); err != nil {
				return err
			}
		}
	}
}

// list lists all entities.
func (s *salvage) list(ctx context.Context) ([]httpapi.Entity, error) {
	var all []httpapi.Entity
	for token := ""; ; {
		var page httpapi.Page
		err := within(ctx, 0, func(ctx context.Context) (err error) {
			page, err = s.client.ListEntities(ctx, "", name.MaxPageSize, token)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list the entities: %w", err)
		}
		all = append(all, page.Entities...)
		if token = page.NextPageToken; token == "" {
			return all, nil
		}
	}
}
