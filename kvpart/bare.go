package kvpart

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/internal/ctxlock"
)

// bare is a single engine under a single lock, the baseline for partitions.
type bare struct {
	mu     sync.RWMutex
	keys   btree.Set[string]
	home   *home
	homes  *homes
	closed bool
	ran    atomic.Int64
	live   atomic.Int64 // keys; read without mu
	buf    []byte       // guarded by mu
}

// newBare moves all keys into one engine, the first of the present generation.
func newBare(hs *homes, keys map[string]*home) (*bare, error) {
	b := &bare{homes: hs, home: hs.present.Load().homes[0]}
	var writes []engine.Write
	moved := make(map[*home][]engine.Write)
	for key, h := range keys {
		b.keys.Insert(key)
		if h == b.home {
			continue
		}
		value, err := h.engine.Get(key, nil)
		if err != nil {
			return nil, h.failed(err)
		}
		moved[h] = append(moved[h], engine.Write{Key: key, Delete: true})
		writes = append(writes, engine.Write{Key: key, Value: value})
		if len(writes) == moveMost {
			if err := b.home.engine.Apply(writes); err != nil {
				return nil, b.home.failed(err)
			}
			writes = writes[:0]
		}
	}
	if err := b.home.engine.Apply(writes); err != nil {
		return nil, b.home.failed(err)
	}
	if err := applyAll(moved); err != nil {
		return nil, err
	}
	for h, all := range moved {
		h.keys.Add(-int64(len(all)))
	}
	b.live.Store(int64(b.keys.Len()))
	return b, hs.retire()
}

// lock takes the lock, with share for reading. It fails if the store is closed, or if ctx
// ends before.
func (b *bare) lock(ctx context.Context, share bool) error {
	err := ctx.Err()
	if err == nil {
		err = ctxlock.Lock(ctx, &b.mu, share)
	}
	if err != nil {
		return err
	}
	if b.closed {
		ctxlock.Unlock(&b.mu, share)
		return ErrClosed
	}
	b.ran.Add(1)
	return nil
}

func (b *bare) read(ctx context.Context, key string, dst []byte) ([]byte, error) {
	if err := b.lock(ctx, true); err != nil {
		return dst, err
	}
	defer b.mu.RUnlock()
	return b.get(key, dst)
}

func (b *bare) get(key string, dst []byte) ([]byte, error) {
	out, err := b.home.get(key, dst)
	if errors.Is(err, engine.ErrNotFound) {
		return dst, ErrNotFound
	}
	return out, err
}

func (b *bare) write(ctx context.Context, key string, value []byte) error {
	if err := b.lock(ctx, false); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if b.home.stamped {
		b.buf = append(b.buf[:0], make([]byte, stampSize)...)
		b.buf = append(b.buf, value...)
		putStamp(b.buf, markValue, b.homes.version.Add(1))
		value = b.buf
	}
	if err := b.home.engine.Put(key, value); err != nil {
		return b.home.failed(err)
	}
	b.keys.Insert(key)
	b.live.Store(int64(b.keys.Len()))
	return nil
}

func (b *bare) remove(ctx context.Context, key string) error {
	if err := b.lock(ctx, false); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if err := b.home.engine.Delete(key); err != nil {
		return b.home.failed(err)
	}
	b.keys.Delete(key)
	b.live.Store(int64(b.keys.Len()))
	return nil
}

func (b *bare) scan(ctx context.Context, from string, limit int, dst []Pair) ([]Pair, error) {
	if err := b.lock(ctx, true); err != nil {
		return dst, err
	}
	defer b.mu.RUnlock()
	o := ops.Get().(*op)
	defer o.free()
	o.ctx, o.names, o.at, o.pairs = ctx, o.names[:0], b.home, dst
	b.keys.Ascend(from, func(key string) bool {
		o.names = append(o.names, key)
		return len(o.names) < limit
	})
	if err := b.home.engine.Gather(o.names, o.visit); err != nil {
		return dst, b.home.failed(err)
	}
	return o.pairs, nil
}

func (b *bare) execute(ctx context.Context, t *tx, n *nesting) error {
	if err := b.lock(ctx, false); err != nil {
		return err
	}
	defer b.mu.Unlock()
	t.read = b.get
	if err := t.run(n, 0); err != nil {
		return err
	}
	var writes []engine.Write
	for i, key := range t.keys {
		switch t.slots[i].state {
		case put:
			writes = append(writes, engine.Write{Key: key, Value: t.value(i, b.homes, b.home.stamped)})
		case deleted:
			writes = append(writes, engine.Write{Key: key, Delete: true})
		case untouched:
		}
	}
	if err := b.home.engine.Apply(writes); err != nil {
		return b.home.failed(err)
	}
	for _, w := range writes {
		if w.Delete {
			b.keys.Delete(w.Key)
		} else {
			b.keys.Insert(w.Key)
		}
	}
	b.live.Store(int64(b.keys.Len()))
	return nil
}

func (b *bare) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

func (b *bare) stats() Stats {
	n := b.ran.Load()
	return Stats{
		Operations: n, Keys: int(b.live.Load()), Queued: []int{0}, PerPartition: []int64{n},
		Generations: 1, DiskBytes: b.home.engine.DiskBytes(),
	}
}
