package kvpart

import (
	"context"
	"errors"
	"sync"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/sched"
)

// item is the state that the scheduler keeps for a key.
type item struct {
	// home is the engine that has the key's value, nil if the key has none.
	home *home
	// cell holds the value, if the engine has cells.
	cell *engine.Cell
	// generation is the number of home's generation. The upkeep reads it while requests
	// run on the key; hence the functions of package atomic.
	generation uint32
	// part is home's number in its generation; the same holds.
	part uint32
	// move is the move under way of the key's value, or of a former copy; nil for none.
	move *move
}

type (
	entry   = sched.Entry[item]
	request = sched.Request[item]
)

// errLost says that an engine does not have a value that was put into it.
var errLost = errors.New("engine lost a value")

// opKind says what an op does.
type opKind uint8

const (
	opRead opKind = iota + 1
	opWrite
	opDelete
	opScan
	opExecute
	opMove  // of the upkeep: moves keys to the present generation
	opClear // of the upkeep: removes stale copies
	// of the upkeep: begin and end moves of values and of stale copies, see move
	opTake
	opCollect
	opArrive
	opPlace // of the upkeep: does nothing but give keys a partition
)

// op is a request under way. It is pooled. A worker may still run an op after its caller
// has given up; own says whether the op may use its caller's memory.
type op struct {
	s    *Store
	req  request
	kind opKind
	err  error
	// own reports whether the caller may give up: the op then uses only its own memory.
	own bool
	// buf is the op's own memory: room for a stamp, and then a value.
	buf []byte
	// value is the value to write, or the buffer to append a read value to.
	value []byte
	// ctx ends a scan early; nil for none.
	ctx context.Context
	// pairs is the destination of a scan; mine is the op's own.
	pairs, mine []Pair
	limit       int // most pairs
	reach       int // entries of a scan
	vacant      int // entries of the scan without a value
	keys        []string
	// names, at and visit belong to the present call of Gather.
	names []string
	at    *home
	visit func(i int, value []byte) error

	tx     *tx            // of opExecute
	writes []engine.Write // of opExecute and opMove
	former *generation    // of opMove: the generation to empty
	moving *move          // of opTake, opCollect and opArrive
	done   *Request       // of Start
}

var ops = sync.Pool{New: func() any {
	o := new(op)
	o.visit = o.gathered
	return o
}}

// newOp returns an op; the caller sets its request up.
func (s *Store) newOp(kind opKind, own bool) *op {
	o := ops.Get().(*op)
	o.s, o.kind, o.own = s, kind, own
	return o
}

// keep is the most bytes of memory that a pooled op keeps.
const keep = 1 << 20

// free gives an op back to the pool.
func (o *op) free() {
	o.s, o.err, o.value, o.pairs, o.tx, o.done, o.at, o.former, o.ctx = nil, nil, nil, nil, nil, nil, nil, nil, nil
	o.moving = nil
	if cap(o.buf) > keep {
		o.buf = nil
	}
	if cap(o.mine) > 64 {
		o.mine = nil
	}
	if cap(o.names) > 1024 {
		o.names, o.keys = nil, nil
	}
	clear(o.writes)
	o.writes = o.writes[:0]
	ops.Put(o)
}

// End implements sched.Job.
func (o *op) End(err error) {
	if o.done == nil {
		o.free() // the caller has given up
		return
	}
	o.s.finish(o, err)
}

// Run implements sched.Job.
func (o *op) Run(r *request) {
	if m := o.s.meter; m != nil && r.Seen() {
		m.run(o, r)
		return
	}
	o.run(r)
}

func (o *op) run(r *request) {
	entries := r.Entries()
	switch o.kind {
	case opRead:
		o.err = o.read(entries[0])
	case opWrite:
		o.err = o.s.put(entries[0], r.Partitions()[0], o)
	case opDelete:
		o.err = o.s.remove(entries[0])
	case opScan:
		o.err = o.scan(entries)
	case opExecute:
		o.err = o.execute(r)
	case opMove:
		o.err = o.move(r)
	case opTake:
		o.err = o.take(r)
	case opCollect:
		o.err = o.collect(r)
	case opArrive:
		o.arrived(r)
	case opPlace:
	case opClear:
		o.s.arrive(entries[0])
		o.err = o.s.homes.clear(entries[0].Key(), entries[0].Value.home)
	}
}

func (o *op) read(e *entry) (err error) {
	if !e.Present {
		return ErrNotFound
	}
	o.value, err = e.Value.get(e.Key(), o.value)
	return err
}

// get appends the value of key, which is present, to dst.
func (it *item) get(key string, dst []byte) ([]byte, error) {
	if it.cell != nil {
		return it.cell.Get(dst), nil
	}
	return it.home.get(key, dst)
}

// give hands the value to write to the op.
func (o *op) give(value []byte) {
	if !o.own && !o.s.durable {
		o.value = value
		return
	}
	o.buf = append(o.buf[:0], make([]byte, stampSize)...)
	o.buf = append(o.buf, value...)
	o.value = o.buf[stampSize:]
}

// scan gathers the pairs of entries, up to the limit, engine by engine.
func (o *op) scan(entries []*entry) error {
	if o.own {
		o.pairs = o.mine
	}
	o.pairs = o.pairs[:0]
	o.vacant = 0
	for i := 0; i < len(entries) && len(o.pairs) < o.limit; {
		if err := o.look(); err != nil {
			return err
		}
		if e := entries[i]; e.Present && e.Value.cell != nil {
			o.pairs = addPair(o.pairs, e.Key(), e.Value.cell.Value())
			i++
			continue
		}
		o.names, o.at = o.names[:0], nil
		for ; i < len(entries) && len(o.pairs)+len(o.names) < o.limit; i++ {
			e := entries[i]
			if !e.Present {
				o.vacant++
				continue
			}
			if e.Value.cell != nil || o.at != nil && o.at != e.Value.home {
				break
			}
			o.at = e.Value.home
			o.names = append(o.names, e.Key())
		}
		if o.at == nil {
			continue
		}
		want := len(o.pairs) + len(o.names)
		if err := o.at.engine.Gather(o.names, o.visit); err != nil {
			return o.at.failed(err)
		}
		if len(o.pairs) != want {
			return o.at.failed(errLost)
		}
	}
	if o.own {
		o.mine = o.pairs
	}
	return nil
}

// look fails if the context of a scan has ended. It looks once for many pairs.
func (o *op) look() error {
	if o.ctx == nil || len(o.pairs)%lookEvery != 0 {
		return nil
	}
	return o.ctx.Err()
}

// lookEvery is how many pairs a scan adds between two looks at its context.
const lookEvery = 256

// gathered takes a value of Gather.
func (o *op) gathered(i int, value []byte) error {
	if err := o.look(); err != nil {
		return err
	}
	value, err := o.at.plain(value)
	if err != nil {
		return err
	}
	o.pairs = addPair(o.pairs, o.names[i], value)
	return nil
}

// addPair appends a copy of a pair. It reuses the memory of the element behind dst.
func addPair(dst []Pair, key string, value []byte) []Pair {
	n := len(dst)
	if n < cap(dst) {
		dst = dst[:n+1]
	} else {
		dst = append(dst, Pair{})
	}
	dst[n].Key = key
	dst[n].Value = append(dst[n].Value[:0], value...)
	return dst
}
