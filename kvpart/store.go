package kvpart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
)

// Store is a partitioned store. Its methods may be called at the same time. Each request
// takes effect at one instant between its call and its return. If the context of a
// request ends before the request runs, it is not done and fails with the context's
// error. If the context ends later, the request may have been done and fails with
// ErrUnknown as well.
//
// If an engine fails, the caller gets its error and nothing is changed. But a write that
// failed with engine.ErrBroken may be found when the store is opened again.
type Store struct {
	strategy Strategy
	durable  bool
	sched    *sched.Scheduler[item]
	bare     *bare // instead of sched
	control  *control.Controller[*entry]
	meter    *meter // with a policy that balances loads
	homes    homes
	live     atomic.Int64 // keys that have a value
	log      *slog.Logger

	stop   context.CancelFunc // of the upkeep
	upkeep sync.WaitGroup

	closing sync.Once
	closed  error // the result of Close

	nesting nesting
}

// Open opens a store, with the keys that its directories hold. It fails with ErrOptions
// if an option is out of range.
func Open(o Options) (*Store, error) {
	factory, err := o.complete()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		began := time.Now()
		o.Now = func() time.Duration { return time.Since(began) }
	}
	s := &Store{strategy: o.Strategy, durable: factory.Durable, log: o.Log}
	hs := &s.homes
	hs.backend, hs.factory, hs.dirs, hs.width, hs.most = o.Backend, factory, o.Dirs, 1, o.Generations
	hs.config.Cache, hs.config.Log = o.Cache, o.Log
	hs.kick = make(chan struct{}, 1)
	if o.Strategy.hard() {
		hs.width = o.Partitions
		hs.eager = o.Follow || o.Policy.Balance != BalanceGraph
	}
	if err := hs.open(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.begin(&o); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, hs.close()))
	}
	return s, nil
}

// begin takes up the keys of the engines, and starts the goroutines of the store.
func (s *Store) begin(o *Options) error {
	keys, err := s.load()
	if err != nil {
		return err
	}
	if s.strategy == Bare {
		s.nesting.running = make([]atomic.Uintptr, 1)
		s.bare, err = newBare(&s.homes, keys)
		return err
	}
	s.nesting.running = make([]atomic.Uintptr, o.Partitions)
	mode := sched.Callers
	run, threads := o.Scheduler.early()
	switch {
	case threads:
		mode = sched.Threads
	case s.strategy.workers():
		mode = sched.Workers
	}
	so := sched.Options[item]{
		Partitions: o.Partitions, Mode: mode, Queue: o.Queue, Now: o.Now, Early: sched.Early{Mode: run, Threads: o.Threads},
		Place: map[Placement]sched.Placement{RoundRobin: sched.RoundRobin, Hash: sched.Hash, Together: sched.Together, Beside: sched.Beside, Within: sched.Within}[o.Place],
	}
	b := new(balance)
	if o.Policy.Kind != Static && o.Policy.Balance == BalanceGraph {
		so.Observer = b
	}
	if s.sched, err = sched.New(so); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.sched.Close()
		}
	}()
	b.Scheduler, b.store = s.sched, s
	if o.Policy.Kind != Static {
		if b.control, err = control.New(o.control(b)); err != nil {
			return err
		}
		s.control = b.control
		if o.Policy.Balance != BalanceGraph {
			s.meter = &meter{
				control: s.control, times: make([]atomic.Int64, o.Partitions), cpu: o.Policy.Balance != BalanceDisk,
				disk: s.durable && s.strategy.hard() && o.Policy.Balance != BalanceCPU && o.disks(),
			}
		}
	}
	if err = s.restore(keys); err != nil {
		return err
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	u := upkeep{store: s}
	s.upkeep.Go(func() { u.loop(ctx) })
	s.homes.wake()
	if s.control != nil {
		s.control.Start()
	}
	return nil
}

// load returns the home of each key in durable engines.
func (s *Store) load() (map[string]*home, error) {
	if !s.durable {
		return nil, nil
	}
	return s.homes.load()
}

// restore hands the keys to the scheduler.
func (s *Store) restore(keys map[string]*home) error {
	present := s.homes.present.Load()
	for key, h := range keys {
		partition := sched.Unplaced
		if s.strategy.hard() && h.gen == present {
			partition = h.part
		}
		if err := s.sched.Restore(key, partition, item{home: h, generation: h.gen.number, part: uint32(h.part)}); err != nil {
			return err
		}
	}
	s.live.Store(int64(len(keys)))
	return nil
}

// Close refuses new requests, waits for requests under way, and closes the engines. It
// also returns the first error for which no caller waited. Called by the function of an
// Execute, it fails with ErrNested.
func (s *Store) Close() error {
	if err := s.outside("close store"); err != nil {
		return err
	}
	s.closing.Do(func() {
		if s.bare != nil {
			s.bare.close()
		} else {
			if s.control != nil {
				s.control.Close()
			}
			s.stop()
			s.upkeep.Wait()
			s.sched.Close()
		}
		if err := s.homes.close(); err != nil {
			s.closed = fmt.Errorf("close store: %w", err)
		}
	})
	return s.closed
}

// note keeps and logs an error for which no caller waits.
func (s *Store) note(doing string, err error) {
	s.log.Error("kvpart", "doing", doing, "err", err)
	s.homes.mu.Lock()
	defer s.homes.mu.Unlock()
	if s.homes.fault == nil {
		s.homes.fault = fmt.Errorf("%s: %w", doing, err)
	}
}

// own reports whether the caller of a request may be gone while it runs.
func (s *Store) own(ctx context.Context) bool { return s.strategy.workers() && ctx.Done() != nil }

// do runs an op. If back is false, a worker may still hold the op: do not use it.
func (s *Store) do(ctx context.Context, o *op) (back bool, err error) {
	err = s.sched.Do(ctx, &o.req)
	if err == nil {
		return true, o.err
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return false, translate(err)
	}
	return true, translate(err)
}

// translate turns an error of the scheduler into an error of the store.
func translate(err error) error {
	switch {
	case errors.Is(err, sched.ErrClosed):
		return ErrClosed
	case errors.Is(err, sched.ErrUnknown):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

func doing(what, key string, err error) error { return fmt.Errorf("%s %.64q: %w", what, key, err) }

// Read appends the value of key to dst, or fails with ErrNotFound.
func (s *Store) Read(ctx context.Context, key string, dst []byte) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return dst, err
	}
	if s.nesting.inside() {
		return dst, doing("read", key, ErrNested)
	}
	if s.bare != nil {
		out, err := s.bare.read(ctx, key, dst)
		if err != nil {
			return dst, doing("read", key, err)
		}
		return out, nil
	}
	o := s.newOp(opRead, s.own(ctx))
	o.value = dst
	if o.own {
		o.value = o.buf[:0]
	}
	o.req.One(key, sched.Share, o)
	back, err := s.do(ctx, o)
	if !back {
		return dst, doing("read", key, err)
	}
	if err != nil {
		if errors.Is(err, sched.ErrNoEntry) {
			err = ErrNotFound
		}
		err = doing("read", key, err)
	} else if o.own {
		o.buf = o.value
		dst = append(dst, o.value...)
	} else {
		dst = o.value
	}
	o.free()
	return dst, err
}

// Write sets the value of key.
func (s *Store) Write(ctx context.Context, key string, value []byte) error {
	return s.write(ctx, key, value, true)
}

// Load sets the value of key as Write does, but does not count as use of the key. It is
// for bulk writes before the store is used, which do not tell how often keys will be
// used, nor which keys together.
func (s *Store) Load(ctx context.Context, key string, value []byte) error {
	return s.write(ctx, key, value, false)
}

func (s *Store) write(ctx context.Context, key string, value []byte, use bool) error {
	if err := errors.Join(checkKey(key), checkValue(value)); err != nil {
		return err
	}
	var err error
	if s.nesting.inside() {
		err = ErrNested
	} else if s.bare != nil {
		err = s.bare.write(ctx, key, value)
	} else {
		o := s.newOp(opWrite, s.own(ctx))
		o.give(value)
		o.req.One(key, sched.Create, o)
		if !use {
			o.req.Unseen()
		}
		var back bool
		if back, err = s.do(ctx, o); back {
			o.free()
		}
	}
	if err != nil {
		return doing("write", key, err)
	}
	return nil
}

// Delete removes key. Removing a missing key is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	var err error
	if s.nesting.inside() {
		err = ErrNested
	} else if s.bare != nil {
		err = s.bare.remove(ctx, key)
	} else {
		o := s.newOp(opDelete, false)
		o.req.One(key, s.removal(), o)
		var back bool
		if back, err = s.do(ctx, o); back {
			o.free()
			if errors.Is(err, sched.ErrNoEntry) {
				err = nil
			}
		}
	}
	if err != nil {
		return doing("delete", key, err)
	}
	return nil
}

// removal returns how a removal uses its entry. Where suspects exist, a key without an
// entry may have copies that would be found when the store is opened again.
func (s *Store) removal() sched.Access {
	if s.homes.count.Load() > 0 {
		return sched.Create
	}
	return sched.Alone
}

// Scan returns the first limit keys not below from, with their values, in ascending
// order, all as of one instant. It reuses dst and the memory of its pairs up to its
// capacity, and overwrites them. It ends early if ctx ends.
func (s *Store) Scan(ctx context.Context, from string, limit int, dst []Pair) ([]Pair, error) {
	dst = dst[:0]
	if err := checkScan(from, limit); err != nil {
		return dst, err
	}
	if s.nesting.inside() {
		return dst, doing("scan from", from, ErrNested)
	}
	if s.bare != nil {
		out, err := s.bare.scan(ctx, from, limit, dst)
		if err != nil {
			return dst, doing("scan from", from, err)
		}
		return out, nil
	}
	for reach := limit; ; {
		o := s.newOp(opScan, s.own(ctx))
		o.setUpScan(ctx, limit, dst)
		o.req.Range(from, reach, sched.Share, o)
		back, err := s.do(ctx, o)
		if !back {
			return dst, doing("scan from", from, err)
		}
		if more := o.more(reach); err == nil && more > 0 {
			dst = o.scanned(dst)[:0]
			o.free()
			reach += more
			continue
		}
		if err != nil {
			err = doing("scan from", from, err)
		} else {
			dst = o.scanned(dst)
		}
		o.free()
		return dst, err
	}
}

func (o *op) setUpScan(ctx context.Context, limit int, dst []Pair) {
	o.ctx, o.limit, o.pairs = ctx, limit, dst
}

// more returns how many further entries a scan must reach, for it met entries without a
// value; 0 if none.
func (o *op) more(reach int) int {
	if len(o.req.Entries()) < reach || len(o.pairs) == o.limit {
		return 0
	}
	return 2*o.vacant + 16
}

// scanned returns the pairs of a scan, in the memory of dst.
func (o *op) scanned(dst []Pair) []Pair {
	if !o.own {
		return o.pairs
	}
	for i := range o.pairs {
		dst = addPair(dst, o.pairs[i].Key, o.pairs[i].Value)
	}
	return dst
}

func checkScan(from string, limit int) error {
	if len(from) > MaxKey {
		return fmt.Errorf("%w: %d bytes, want %d at most", ErrKey, len(from), MaxKey)
	}
	return check("limit", limit, 1, MaxScan)
}
