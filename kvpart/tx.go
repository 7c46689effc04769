package kvpart

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/kvpart/sched"
)

// errOver says that a transaction was used after its function returned.
var errOver = errors.New("transaction is over")

// touch is the last change a transaction made to a key.
type touch uint8

const (
	untouched touch = iota
	put
	deleted
)

// slot holds the change of a transaction to one of its keys.
type slot struct {
	state    touch
	at, size int // place in the arena: room for a stamp, and then the value
}

// tx is the Tx of an Execute. Nothing is written before its function has returned.
type tx struct {
	fn      func(Tx) error
	keys    []string
	entries []*entry
	slots   []slot
	arena   []byte
	// read replaces entries in a store without a scheduler.
	read func(key string, dst []byte) ([]byte, error)
	err  error // the transaction was misused
	over bool
}

var _ Tx = (*tx)(nil)

// Execute runs fn alone on keys. If fn fails, nothing is changed and its error is
// returned. If fn panics, the error matches *sched.PanicError. With workers fn may run,
// or be running, after Execute was given up and failed with ErrUnknown.
//
// fn has its keys, through the Tx, and other stores, but not this store: requests of fn's
// goroutine to this store fail with ErrNested, and so do Reassign and Close. fn must not
// wait for another goroutine that uses this store.
func (s *Store) Execute(ctx context.Context, keys []string, fn func(Tx) error) error {
	if err := s.outside("execute"); err != nil {
		return err
	}
	if err := check("number of keys", len(keys), 1, MaxTxKeys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	t := &tx{fn: fn, keys: slices.Clone(keys)}
	slices.Sort(t.keys)
	t.keys = slices.Compact(t.keys)
	t.slots = make([]slot, len(t.keys))
	if s.bare != nil {
		return s.bare.execute(ctx, t, &s.nesting)
	}
	o := s.newOp(opExecute, true)
	o.tx = t
	o.req.Several(t.keys, sched.Create, o)
	back, err := s.do(ctx, o)
	if back {
		o.free()
	}
	return err
}

// execute runs the function of a transaction, and then commits its writes.
func (o *op) execute(r *request) error {
	t := o.tx
	t.entries = r.Entries()
	if err := t.run(&o.s.nesting, r.Partitions()[0]); err != nil {
		return err
	}
	return o.commit(r)
}

// run runs the function, which has the partition to itself.
func (t *tx) run(n *nesting, partition int32) error {
	at := n.enter(partition)
	defer func() {
		t.over = true
		n.leave(at)
	}()
	err := t.fn(t)
	if t.err != nil {
		return t.err
	}
	return err
}

// find returns the index of key among the declared keys.
func (t *tx) find(key string) (int, error) {
	if t.over {
		return 0, errOver
	}
	i, ok := slices.BinarySearch(t.keys, key)
	if !ok {
		t.err = fmt.Errorf("%w %.64q", ErrUndeclared, key)
		return 0, t.err
	}
	return i, nil
}

// Get implements Tx.
func (t *tx) Get(key string, dst []byte) ([]byte, error) {
	i, err := t.find(key)
	if err != nil {
		return dst, err
	}
	switch s := &t.slots[i]; s.state {
	case put:
		from := s.at + stampSize
		return append(dst, t.arena[from:from+s.size]...), nil
	case deleted:
		return dst, ErrNotFound
	case untouched:
	}
	if t.read != nil {
		return t.read(key, dst)
	}
	e := t.entries[i]
	if !e.Present {
		return dst, ErrNotFound
	}
	return e.Value.get(key, dst)
}

// Put implements Tx.
func (t *tx) Put(key string, value []byte) error {
	i, err := t.find(key)
	if err != nil {
		return err
	}
	if err := checkValue(value); err != nil {
		return err
	}
	s := &t.slots[i]
	if s.state != put || len(value) > s.size {
		s.at = len(t.arena)
		t.arena = slices.Grow(t.arena, stampSize+len(value))[:s.at+stampSize+len(value)]
	}
	s.state, s.size = put, len(value)
	copy(t.arena[s.at+stampSize:], value)
	return nil
}

// Delete implements Tx.
func (t *tx) Delete(key string) error {
	i, err := t.find(key)
	if err != nil {
		return err
	}
	t.slots[i].state = deleted
	return nil
}

// value returns the value put into slot i, in the form that an engine keeps.
func (t *tx) value(i int, hs *homes, stamped bool) []byte {
	s := &t.slots[i]
	v := t.arena[s.at : s.at+stampSize+s.size]
	if !stamped {
		return v[stampSize:]
	}
	putStamp(v, markValue, hs.version.Add(1))
	return v
}
