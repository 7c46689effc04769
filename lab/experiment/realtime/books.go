package realtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/wan"
)

// pollEvery is the interval between attempts of until.
const pollEvery = 100 * time.Millisecond

// until repeats f until it succeeds or settleTime has passed.
func until(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if wan.Wait(ctx, pollEvery) != nil {
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		}
	}
}

// create creates the entity and waits until each site has its equal part.
func create(ctx context.Context, o *Options, books *client.Client, sites []*client.Client) error {
	o.Progress(fmt.Sprintf("creating %s with a limit of %d", entity, o.Limit))
	// All attempts have the same id: no attempt must fail because the entity exists.
	id := "create-" + entity
	err := until(ctx, func(ctx context.Context) error { return books.CreateEntity(ctx, entity, o.Limit, client.RequestID(id)) })
	if err != nil {
		return fmt.Errorf("create the entity: %w", err)
	}
	for i, s := range sites {
		err := until(ctx, func(ctx context.Context) error {
			_, err := s.Entity(ctx, entity, client.Local())
			return err
		})
		if err != nil {
			return fmt.Errorf("read the entity at site %s: %w", regions[i], err)
		}
	}
	return wan.Wait(ctx, lead)
}

// errUnrest says that the books do not yet describe a cluster at rest.
var errUnrest = errors.New("the books come to no rest")

// check compares the books of all sites with the clients' tokens.
func (l *load) check(ctx context.Context, books *client.Client) error {
	if peak := l.ledger.MaxAcquired(entity); peak.Tokens > l.o.Limit {
		return fmt.Errorf("%w: clients held %d tokens, the limit is %d", ErrUnsound, peak.Tokens, l.o.Limit)
	}
	if p := l.ledger.Pending(entity); p.Acquires+p.Releases > 0 {
		return fmt.Errorf("%w: %d acquires and %d releases have no answer", ErrUnsound, p.Acquires, p.Releases)
	}
	var read client.Entity
	err := until(ctx, func(ctx context.Context) error {
		var err error
		if read, err = books.Entity(ctx, entity); err != nil {
			return err
		}
		if !read.Complete || !read.Consistent || read.InTransit != 0 {
			return fmt.Errorf("%w: %+v", errUnrest, read)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	held := l.ledger.Held(entity)
	if read.Limit != l.o.Limit || read.Acquired != held || read.Available+held != read.Limit {
		return fmt.Errorf("%w: the sites have %d tokens left and %d out of a limit of %d, clients hold %d",
			ErrUnsound, read.Available, read.Acquired, read.Limit, held)
	}
	return nil
}
