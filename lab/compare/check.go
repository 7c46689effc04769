package compare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// Errors of a system that does not do its job.
var (
	// ErrLimit: more or less than the limit was granted.
	ErrLimit = errors.New("the limit was not kept")
	// ErrRepeat: a repeat of a request id got another answer, or moved tokens.
	ErrRepeat = errors.New("a repeated request was not answered as the first time")
	// ErrBooks: the tokens left do not match the grants.
	ErrBooks = errors.New("what was granted and what is left do not add up")
)

// scarce is the number of tokens of a checked entity. The callers ask for twice as
// many.
const scarce = 150

// check checks that a driver keeps the limit when callers ask for more, and answers
// a repeat like the first request, if the system remembers ids.
func check(ctx context.Context, books Books, d Driver, about *About, w Way, entity string) error {
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
	tries := [][]bool{first, again}
	if about.Forgets {
		tries, again = tries[:1], first
	}
	for _, answers := range tries {
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

// balance checks that each entity has lost exactly the tokens granted.
func balance(entities []string, before, after, granted []int64) error {
	for i, name := range entities {
		if gone := before[i] - after[i]; gone != granted[i] {
			return fmt.Errorf("%s has lost %d tokens, and %d were granted: %w", name, gone, granted[i], ErrBooks)
		}
	}
	return nil
}
