package compare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// Errors that say that a system did not do the job.
var (
	// ErrLimit: more, or less, was granted than the limit.
	ErrLimit = errors.New("the limit was not kept")
	// ErrRepeat: a repeat of a request id had another answer, or moved tokens.
	ErrRepeat = errors.New("a repeated request was not answered as the first time")
	// ErrBooks: the tokens left are not those that the grants told of left.
	ErrBooks = errors.New("what was granted and what is left do not add up")
)

// scarce is how many tokens the entity of a check has; so many callers ask for
// twice as many.
const scarce = 150

// check sees that a driver keeps a limit that is reached, and that it answers a
// repeat as the first time.
func check(ctx context.Context, books Books, d Driver, w Way, entity string) error {
	if err := books.Create(ctx, []string{entity}, scarce); err != nil {
		return fmt.Errorf("create %s: %w", entity, err)
	}
	calls := (2*scarce + w.Batch - 1) / w.Batch
	asked := calls * w.Batch
	requests := make([]Request, asked)
	for i := range requests {
		requests[i] = Request{Entity: entity, ID: entity + "-" + strconv.Itoa(i)}
	}
	first, again := make([]bool, asked), make([]bool, asked)
	for _, answers := range [][]bool{first, again} {
		if err := askAll(ctx, d, w, requests, answers); err != nil {
			return err
		}
		granted := 0
		for _, ok := range answers {
			if ok {
				granted++
			}
		}
		if granted != scarce {
			return fmt.Errorf("%d of %d tokens were granted: %w", granted, scarce, ErrLimit)
		}
	}
	for i := range first {
		if first[i] != again[i] {
			return fmt.Errorf("request %s: %w", requests[i].ID, ErrRepeat)
		}
	}
	left, err := books.Left(ctx, []string{entity})
	if err != nil {
		return fmt.Errorf("read the books: %w", err)
	}
	if left[0] != 0 {
		return fmt.Errorf("%d of %d tokens are left after all were granted: %w", left[0], scarce, ErrBooks)
	}
	return nil
}

// askAll has the callers of a way ask for all requests together.
func askAll(ctx context.Context, d Driver, w Way, requests []Request, granted []bool) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next atomic.Int64
	var callers sync.WaitGroup
	for i := range w.Callers {
		callers.Go(func() {
			for {
				to := int(next.Add(int64(w.Batch)))
				if to > len(requests) {
					return
				}
				from := to - w.Batch
				if err := d.Acquire(ctx, i, requests[from:to], granted[from:to]); err != nil {
					fail(err)
					return
				}
			}
		})
	}
	callers.Wait()
	return context.Cause(ctx)
}

// balance sees that each entity has lost as many tokens as were granted.
func balance(entities []string, before, after, granted []int64) error {
	for i, name := range entities {
		if gone := before[i] - after[i]; gone != granted[i] {
			return fmt.Errorf("%s has lost %d tokens, and %d were granted: %w", name, gone, granted[i], ErrBooks)
		}
	}
	return nil
}
