package kvpart

import (
	"context"
	"errors"
	"fmt"

	"github.com/samya-db/samya/kvpart/sched"
)

// Start hands a request over without waiting for its end; it waits while the queue of a
// worker is full. An error means that the request was not handed over. Start needs a
// strategy with workers; with others it fails with ErrOptions. Requests of one goroutine
// on the same key run in the order in which it started them.
func (s *Store) Start(ctx context.Context, r *Request) error {
	if !s.strategy.workers() {
		return bad("Strategy", "%q starts no requests, for it has no workers", s.strategy)
	}
	if err := s.outside("start"); err != nil {
		return err
	}
	o, err := s.prepare(r)
	if err != nil {
		return err
	}
	if err := s.sched.Start(ctx, &o.req); err != nil {
		if errors.Is(err, sched.ErrNoEntry) {
			o.End(err)
			return nil
		}
		o.free()
		return fmt.Errorf("start: %w", translate(err))
	}
	return nil
}

// prepare makes an op of a request.
func (s *Store) prepare(r *Request) (*op, error) {
	if r.Done == nil {
		return nil, bad("Done", "nil")
	}
	var err error
	if r.Kind == ScanRequest {
		err = checkScan(r.Key, r.Limit)
	} else {
		err = checkKey(r.Key)
	}
	if err == nil && r.Kind == WriteRequest {
		err = checkValue(r.Value)
	}
	if err != nil {
		return nil, err
	}
	var o *op
	switch r.Kind {
	case ReadRequest:
		o = s.newOp(opRead, false)
		o.value = r.Value[:0]
		o.req.One(r.Key, sched.Share, o)
	case WriteRequest:
		o = s.newOp(opWrite, false)
		o.give(r.Value)
		o.req.One(r.Key, sched.Create, o)
	case DeleteRequest:
		o = s.newOp(opDelete, false)
		o.req.One(r.Key, s.removal(), o)
	case ScanRequest:
		o = s.newOp(opScan, false)
		o.limit, o.pairs, o.reach = r.Limit, r.Pairs, r.Limit
		o.req.Range(r.Key, o.reach, sched.Share, o)
	default:
		return nil, bad("Kind", "%d, want %d to %d", r.Kind, ReadRequest, ScanRequest)
	}
	o.done = r
	return o, nil
}

// finish gives a request of Start back to its caller.
func (s *Store) finish(o *op, err error) {
	r := o.done
	if err == nil {
		err = o.err
	}
	switch r.Kind {
	case ReadRequest:
		if errors.Is(err, sched.ErrNoEntry) {
			err = ErrNotFound
		}
		r.Value = o.value
		if err != nil {
			err = doing("read", r.Key, err)
		}
	case WriteRequest:
		if err != nil {
			err = doing("write", r.Key, err)
		}
	case DeleteRequest:
		if errors.Is(err, sched.ErrNoEntry) {
			err = nil
		}
		if err != nil {
			err = doing("delete", r.Key, err)
		}
	case ScanRequest:
		r.Pairs = o.pairs
		if more := o.more(o.reach); err == nil && more > 0 {
			// A worker must not call the scheduler.
			go s.rescan(r)
			o.free()
			return
		}
		if err != nil {
			err = doing("scan from", r.Key, err)
		}
	}
	o.free()
	r.Err = translate(err)
	r.Done(r)
}

// rescan repeats a scan of Start that met keys without a value.
func (s *Store) rescan(r *Request) {
	r.Pairs, r.Err = s.Scan(context.Background(), r.Key, r.Limit, r.Pairs)
	r.Done(r)
}
