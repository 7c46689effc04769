package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/samya-db/samya/client"
)

// do makes a call.
func (d *driver) do(ctx context.Context, op string, a args) (map[string]any, error) {
	switch op {
	case "open":
		return nil, d.open(ctx, a)
	case "cancel":
		d.mu.Lock()
		defer d.mu.Unlock()
		if cancel := d.cancels[a.Of]; cancel != nil {
			cancel()
		}
		return nil, nil
	case "unkeep", "kept":
		return d.told(op, a)
	}
	d.mu.Lock()
	c := d.clients[cmp.Or(a.Client, "main")]
	d.mu.Unlock()
	if c == nil {
		return nil, fmt.Errorf("there is no client %q", a.Client)
	}
	switch op {
	case "acquire":
		g, err := c.Acquire(ctx, a.Entity, a.Tokens, a.acquire()...)
		return map[string]any{"tokens": g.Tokens, "left": g.Left, "site": g.Site, "request_id": g.RequestID}, err
	case "release":
		r, err := c.Release(ctx, a.Entity, a.Tokens, a.release()...)
		return map[string]any{"tokens": r.Tokens, "left": r.Left, "site": r.Site, "request_id": r.RequestID, "parked": r.Parked}, err
	case "acquire_all":
		var parts []client.Part
		for _, p := range a.Parts {
			parts = append(parts, client.Part(p))
		}
		g, err := c.AcquireAll(ctx, parts, a.acquire()...)
		return map[string]any{"site": g.Site, "request_id": g.RequestID}, err
	case "acquire_lease", "renew", "commit", "return_lease", "keep":
		return d.lease(ctx, c, op, a)
	case "watch":
		return watch(ctx, c, a)
	case "burst":
		return burst(ctx, c, a)
	}
	return administer(ctx, c, op, a)
}

// administer reads and changes entities.
func administer(ctx context.Context, c *client.Client, op string, a args) (map[string]any, error) {
	switch op {
	case "entity":
		var opts []client.ReadOption
		switch a.Consistency {
		case "local":
			opts = append(opts, client.Local())
		case "bounded":
			opts = append(opts, client.Bounded(ms(a.MaxAge)))
		case "exact":
			opts = append(opts, client.Exact())
		}
		e, err := c.Entity(ctx, a.Entity, opts...)
		return map[string]any{
			"name": e.Name, "limit": e.Limit, "version": e.Version, "parent": e.Parent, "available": e.Available,
			"acquired": e.Acquired, "complete": e.Complete, "consistent": e.Consistent,
		}, err
	case "create":
		opts := []client.EntityOption{}
		if a.Parent != "" {
			opts = append(opts, client.Below(a.Parent))
		}
		if a.RequestID != "" {
			opts = append(opts, client.RequestID(a.RequestID))
		}
		return nil, c.CreateEntity(ctx, a.Entity, a.Limit, opts...)
	case "set_limit":
		var opts []client.LimitOption
		if a.Version != 0 {
			opts = append(opts, client.ExpectedVersion(a.Version))
		}
		if a.WaitApplied {
			opts = append(opts, client.WaitApplied())
		}
		l, err := c.SetLimit(ctx, a.Entity, a.Limit, opts...)
		return map[string]any{"limit": l.Limit, "version": l.Version, "may_exceed_by": l.MayExceedBy}, err
	case "delete":
		var opts []client.DeleteOption
		if a.Subtree {
			opts = append(opts, client.Subtree())
		}
		return nil, c.DeleteEntity(ctx, a.Entity, opts...)
	}
	return nil, fmt.Errorf("there is no call %q", op)
}

// open makes a client by a name.
func (d *driver) open(ctx context.Context, a args) error {
	cfg := client.Config{}
	for _, t := range a.Targets {
		cfg.Targets = append(cfg.Targets, client.Target{Address: t})
	}
	if a.Token != "" {
		cfg.Token = func(context.Context) (string, error) { return a.Token, nil }
	}
	if a.CA != "" {
		security, err := client.TLSFiles{CA: a.CA}.Credentials(ctx)
		if err != nil {
			return err
		}
		cfg.Security = security
	}
	c, err := client.New(cfg)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[a.Client] = c
	return nil
}

func (a args) acquire() []client.AcquireOption {
	var opts []client.AcquireOption
	if a.Wait != nil {
		opts = append(opts, client.Wait(ms(*a.Wait)))
	}
	if a.MinTokens != 0 {
		opts = append(opts, client.AtLeast(a.MinTokens))
	}
	if a.DryRun {
		opts = append(opts, client.DryRun())
	}
	for _, o := range a.both() {
		opts = append(opts, o)
	}
	return opts
}

func (a args) release() []client.ReleaseOption {
	var opts []client.ReleaseOption
	for _, o := range a.both() {
		opts = append(opts, o)
	}
	return opts
}

func (a args) both() []client.Option {
	opts := []client.Option{client.Resume(a.Resume.error())}
	if a.RequestID != "" {
		opts = append(opts, client.RequestID(a.RequestID))
	}
	return opts
}

// lease makes a call about a lease.
func (d *driver) lease(ctx context.Context, c *client.Client, op string, a args) (map[string]any, error) {
	d.mu.Lock()
	l := d.held[a.Lease]
	d.mu.Unlock()
	if l == nil {
		l = c.LeaseNamed(a.Lease, a.Entity)
	}
	var err error
	switch op {
	case "acquire_lease":
		opts := a.acquire()
		if a.Holder != "" {
			opts = append(opts, client.Holder(a.Holder))
		}
		l, err = c.AcquireLease(ctx, a.Entity, a.Tokens, ms(a.TTL), opts...)
	case "renew":
		l, err = l.Renew(ctx, ms(a.TTL))
	case "commit":
		kept, returned, err := l.Commit(ctx, a.Tokens)
		return map[string]any{"kept": kept, "returned": returned}, err
	case "return_lease":
		r, err := l.Return(ctx, a.Tokens)
		return map[string]any{"tokens": r.Tokens}, err
	case "keep":
		d.mu.Lock()
		defer d.mu.Unlock()
		// The lease is kept until it is told otherwise, and not as long as this call.
		held, stop := l.Keep(context.WithoutCancel(ctx))
		d.kept[a.Lease] = &kept{held, stop}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[l.Name] = l
	return map[string]any{"lease": l.Name, "tokens": l.Tokens, "lasts_ms": time.Until(l.Expires).Milliseconds()}, nil
}

// told tells whether a kept lease is held, or stops keeping it.
func (d *driver) told(op string, a args) (map[string]any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[a.Lease]
	if k == nil {
		return nil, fmt.Errorf("the lease %q is not kept", a.Lease)
	}
	if op == "unkeep" {
		k.stop()
		return nil, nil
	}
	why := ""
	if k.ctx.Err() != nil {
		why = context.Cause(k.ctx).Error()
	}
	return map[string]any{"held": why == "", "why": why}, nil
}

// watch tells the states of an entity, until it has a limit or is deleted.
func watch(ctx context.Context, c *client.Client, a args) (map[string]any, error) {
	var states []any
	token := ""
	for s, err := range c.Watch(ctx, a.Entity, a.ResumeToken) {
		if err != nil {
			return nil, err
		}
		token = s.ResumeToken
		states = append(states, map[string]any{"limit": s.Limit, "version": s.Version, "deleted": s.Deleted})
		if a.UntilLimit != nil && s.Limit == *a.UntilLimit {
			break
		}
	}
	return map[string]any{
		"first": states[0], "last": states[len(states)-1], "states": len(states), "resume_token": token,
	}, nil
}

// burst acquires single tokens until it is canceled, and finds out each unknown outcome.
func burst(ctx context.Context, c *client.Client, a args) (map[string]any, error) {
	var mu sync.Mutex
	granted, resumed, unknown := 0, 0, 0
	failed := ""
	var workers sync.WaitGroup
	for range a.Workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				g, err := c.Acquire(context.WithoutCancel(ctx), a.Entity, 1)
				for tries := 0; errors.Is(err, client.ErrOutcomeUnknown) && tries < 8; tries++ {
					mu.Lock()
					resumed++
					mu.Unlock()
					g, err = c.Acquire(context.WithoutCancel(ctx), a.Entity, 1, client.Resume(err))
				}
				mu.Lock()
				switch {
				case err == nil:
					granted += int(g.Tokens)
				case errors.Is(err, client.ErrOutcomeUnknown):
					unknown++
				default:
					failed = err.Error()
				}
				mu.Unlock()
				pause(ctx, burstPause)
			}
		})
	}
	workers.Wait()
	return map[string]any{"granted": granted, "resumed": resumed, "unknown": unknown, "failed": failed}, nil
}

// burstPause is the time between two acquires of a worker: the machine is shared.
const burstPause = 5 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
