package ratelab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

const (
	// settleTime bounds the work before the load.
	settleTime = time.Minute
	// patience is how long an answer may take beyond the wait.
	patience = 10 * time.Second
	// lead is the time between the creation of the quotas and the load.
	lead = 2 * time.Second
	// grace is the time for a process to stop before it is killed.
	grace = 5 * time.Second
)

// samya is five sites, each with a client in its region.
type samya struct {
	o       *Options
	cluster *proc.Cluster
	clients []*client.Client
}

// startSamya starts the sites and creates the quotas.
func startSamya(ctx context.Context, o *Options, dir string, quotas []Quota) (_ limiter, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	matrix := filepath.Join(dir, "latency")
	if err := os.WriteFile(matrix, []byte(apart(o.RoundTrip)), 0o600); err != nil {
		return nil, fmt.Errorf("write the distances: %w", err)
	}
	s := &samya{o: o}
	if s.cluster, err = proc.Start(ctx, proc.Config{
		Bin: o.Bin, Dir: dir, Cluster: "ratelab", Sites: Regions, Latency: matrix, Grace: grace, SiteArgs: []string{"--log-level", "warn"},
	}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, p := range s.cluster.Sites() {
		c, err := client.New(client.Config{Targets: []client.Target{{Address: "passthrough:///" + p.GRPC}}, FixedTargets: true, TryTime: patience})
		if err != nil {
			return nil, fmt.Errorf("a client of %s: %w", p.Name, err)
		}
		s.clients = append(s.clients, c)
	}
	for i := range quotas {
		if err := s.create(ctx, &quotas[i]); err != nil {
			return nil, err
		}
	}
	return s, wan.Wait(ctx, lead)
}

// apart is a latency matrix: the regions, all as far from each other.
func apart(roundTrip time.Duration) string {
	var lines strings.Builder
	for i, a := range Regions {
		for _, b := range Regions[i+1:] {
			fmt.Fprintf(&lines, "%s, %s, %v\n", a, b, roundTrip)
		}
	}
	return lines.String()
}

// create creates a quota, and waits until all sites have it.
func (s *samya) create(ctx context.Context, q *Quota) error {
	until := func(what string, try func() error) error {
		for {
			err := try()
			if err == nil {
				return nil
			}
			if errors.Is(err, client.ErrInvalid) || wan.Wait(ctx, 100*time.Millisecond) != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	// All attempts have the same id: none must fail because the entity exists.
	err := until("create "+q.name(), func() error {
		return s.clients[0].CreateEntity(ctx, q.name(), q.Limit, client.Rate{Per: q.per(), Kind: q.Kind}, client.RequestID("create-"+q.name()))
	})
	for i, c := range s.clients {
		if err != nil {
			return err
		}
		err = until(fmt.Sprintf("read %s in %s", q.name(), Regions[i]), func() error {
			_, err := c.Entity(ctx, q.name(), client.Local())
			return err
		})
	}
	return err
}

// ask implements limiter.
func (s *samya) ask(ctx context.Context, region int, q *Quota) (outcome, error) {
	tctx, cancel := context.WithTimeout(ctx, s.o.Wait+patience)
	defer cancel()
	_, err := s.clients[region].Acquire(tctx, q.name(), 1, client.Wait(s.o.Wait))
	switch {
	case err == nil:
		return granted, nil
	case errors.Is(err, client.ErrOutOfTokens):
		return refused, nil
	case ctx.Err() != nil:
		return failed, context.Cause(ctx)
	case errors.Is(err, client.ErrOutcomeUnknown):
		return unsettled, nil
	case errors.Is(err, client.ErrOverloaded), errors.Is(err, client.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return failed, nil
	}
	return failed, err
}

// check implements limiter.
func (s *samya) check(context.Context) error {
	select {
	case death := <-s.cluster.Deaths():
		return death
	default:
		return nil
	}
}

// close implements limiter.
func (s *samya) close(ctx context.Context) error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(append(errs, s.cluster.Stop(ctx))...)
}
