package coreslab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/packed"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/store"
)

const (
	// batch1 is the number of requests of most measurements.
	batch1 = 256
	// few and many are requests of commits: the difference is the cost of requests.
	few, many = 64, 1024
	// hotIDs is about the number of ids in a table that lies in the caches.
	hotIDs = 4 * batch1
	// wall is the begin of a core's time, in milliseconds since the Unix epoch.
	wall = 1_700_000_000_000
)

var errAnswer = errors.New("a request was not granted")

// rig is a core, alone or with shards.
type rig struct {
	core  *core.Core
	parts *partitions.Partitions
	names []string
	zipf  *zipf
	rnd   *rand.Rand
	now   input.Now
	ids   []input.Acquire
	out   core.Effects
}

// newRig makes a core with entities that have so many tokens left, and with room for so many
// ids at batch1 a tick. With shards it has two.
func (m *meter) newRig(left core.Tokens, remembered int, shards bool) (*rig, error) {
	data := stored.Restored{Catalogue: &stored.Catalogue{Generation: uint64(m.Entities)}}                                                         //nolint:gosec // a count
	r := &rig{zipf: newZipf(m.Entities), rnd: rand.New(rand.NewPCG(7, 8)), now: input.Now{Tick: 1, Wall: wall}, ids: make([]input.Acquire, many)} //nolint:gosec // a load
	for i := range m.Entities {
		name, generation := entityName(i), uint64(i+1) //nolint:gosec // a count
		r.names = append(r.names, name)
		data.Entities = append(data.Entities, stored.Entity{Name: name, Generation: generation, Initial: input.MaxTokens, Limit: input.MaxTokens, Version: 1})
		data.Books = append(data.Books, stored.Books{Name: name, Generation: generation, Left: left, Net: input.MaxTokens - left})
	}
	c, err := core.New(core.Config{
		Self: "us", Members: []core.SiteID{"us"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: int64(max(2, remembered/batch1)),
	}, data)
	if err != nil {
		return nil, fmt.Errorf("make a core: %w", err)
	}
	r.core = c
	if !shards {
		return r, nil
	}
	if r.parts, err = partitions.New(partitions.Options{Core: c, Count: 2, Most: 1 << 14, Clock: func() time.Duration { return 0 }}); err != nil {
		return nil, fmt.Errorf("make shards: %w", err)
	}
	if m.Entities == 1 {
		r.parts.Alone(func() {})
		// As a site does with an entity that all requests are for.
		r.parts.Alone(func() { r.parts.Split(r.names[0], true) })
	}
	return r, nil
}

// make makes n acquires with ids of their own.
func (r *rig) make(n int) []input.Acquire {
	for i := range n {
		r.ids[i] = input.Acquire{Entity: r.names[r.zipf.draw(r.rnd)], Tokens: 1, Wait: 1000}
		binary.BigEndian.PutUint64(r.ids[i].Request[:], r.rnd.Uint64())
		binary.BigEndian.PutUint64(r.ids[i].Request[8:], r.rnd.Uint64())
	}
	return r.ids[:n]
}

// handle has acquires served by shards, or step the core.
func (r *rig) handle(all []input.Acquire) (served int) {
	for i := range all {
		if r.parts == nil {
			r.core.Step(r.now, &all[i])
			served++
		} else if r.parts.Serve(r.now, &all[i]) {
			served++
		}
	}
	return served
}

// wake tells the core the time.
func (r *rig) wake() {
	if r.parts == nil {
		r.core.Step(r.now, input.Wake{})
		return
	}
	r.parts.Alone(func() { r.core.Step(r.now, input.Wake{}) })
}

// drain takes the effects.
func (r *rig) drain() {
	r.out.Reset()
	if r.parts == nil {
		r.core.Drain(&r.out)
		return
	}
	r.parts.Alone(func() {
		r.core.Drain(&r.out)
		r.parts.Drained()
	})
}

// fill makes requests until the table is as full as it gets.
func (r *rig) fill(ids int) error {
	for n := 0; n < ids+8*batch1; n += batch1 {
		r.now.Tick++
		r.now.Wall++
		if r.handle(r.make(batch1)) != batch1 {
			return errAnswer
		}
		r.drain()
		for i := range r.out.Replies {
			if r.out.Replies[i].Answer.Code != answer.OK {
				return errAnswer
			}
		}
	}
	return nil
}

// timed measures a batch of requests, and its drain; names are of the measurements.
func (m *meter) timed(r *rig, name, drain string) {
	all := r.make(batch1)
	began := time.Now()
	r.handle(all)
	m.note(name, batch1, time.Since(began))
	began = time.Now()
	r.drain()
	m.note(drain, batch1, time.Since(began))
}

// cores measures steps of cores and of shards. The table is measured with a single entity,
// so that nothing else leaves the caches.
func (m *meter) cores(ctx context.Context, c *Costs) error {
	single := *m
	single.Entities = 1
	rigs := make(map[string]*rig)
	for _, k := range []struct {
		name   string
		of     *meter
		ids    int
		shards bool
	}{{"core", m, m.Remembered, false}, {"shard", m, m.Remembered, true}, {"cold", &single, m.Remembered, true}, {"hot", &single, hotIDs, true}} {
		r, err := k.of.newRig(input.MaxTokens, k.ids, k.shards)
		if err != nil {
			return err
		}
		if err := r.fill(k.ids); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		rigs[k.name] = r
	}
	poor, err := single.newRig(0, hotIDs, true)
	if err != nil {
		return err
	}
	slots := make([][44]byte, 0, 1<<20)
	for range m.Rounds {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for name, r := range rigs {
			// Within a tick nothing is forgotten, and then the requests of a tick.
			m.timed(r, name, "drain "+name)
			r.now.Tick++
			r.wake()
			began := time.Now()
			r.drain()
			m.note("forget "+name, batch1, time.Since(began))
		}
		hot := rigs["hot"]
		all := hot.make(batch1)
		hot.handle(all)
		hot.drain()
		for _, of := range []struct {
			name string
			at   *rig
		}{{"", hot}, {"", poor}, {"repeat", hot}, {"decide", poor}} {
			began := time.Now()
			if of.at.handle(all) != 0 {
				return fmt.Errorf("%w: a request to %s was served", errAnswer, of.name)
			}
			m.note(of.name, batch1, time.Since(began))
		}
		if len(slots)+batch1 > cap(slots) {
			slots = slots[:0]
		}
		began := time.Now()
		for i := range all {
			var s [44]byte
			copy(s[:], all[i].Request[:])
			slots = append(slots, s)
		}
		m.note("push", batch1, time.Since(began))
		began = time.Now()
		rigs["core"].drain()
		m.note("drain nothing", 1, time.Since(began))
	}
	c.Step, c.Stepped = m.median("core"), m.median("drain core")
	c.Forget = m.median("forget core")
	c.Hot = max(1, m.median("repeat")-m.median("decide")+m.median("push"))
	c.Table = c.Hot + max(0, m.median("cold")-m.median("hot"))
	c.Serve = max(1, m.median("shard")-c.Table-c.Pack)
	c.Drain, c.Served = m.median("drain nothing"), m.median("drain shard")
	return nil
}

// disk measures commits of a store, and syncs.
func (m *meter) disk(ctx context.Context, c *Costs) (err error) {
	dir, err := os.MkdirTemp(m.Dir, "cores-*.tmp")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	st, err := store.Open(store.Options{Dir: dir, Cluster: "cores", Site: "us", Members: []core.SiteID{"us"}})
	if err != nil {
		return fmt.Errorf("open a store: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	r, err := m.newRig(input.MaxTokens, hotIDs, true)
	if err != nil {
		return err
	}
	r.wake()
	for range m.Rounds {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, n := range []int{few, many} {
			for _, by := range []string{"committer", "shards"} {
				if r.handle(r.make(n)) != n {
					return errAnswer
				}
				r.drain()
				m.pack(r.out.Records.Block.Records)
				if by == "committer" {
					r.out.Records.Block.Unpack()
				}
				began := time.Now()
				if err := st.Append(&r.out.Records); err != nil {
					return err
				}
				m.note(fmt.Sprint(by, n), 1, time.Since(began))
				if err := st.Sync(); err != nil {
					return err
				}
			}
		}
	}
	each := func(by string) float64 {
		return max(1, (m.median(fmt.Sprint(by, many))-m.median(fmt.Sprint(by, few)))/(many-few))
	}
	c.Encode, c.Join = each("committer"), each("shards")
	c.Append = max(1, m.median(fmt.Sprint("committer", few))-few*c.Encode)
	c.Pack = m.median("pack")
	c.Syncs, c.Pairs, err = Syncs(m.Dir, m.Rounds)
	return err
}

// pack measures the encoding of records, as a shard does it.
func (m *meter) pack(records []stored.Request) {
	room := make([]byte, 0, 64*len(records))
	began := time.Now()
	for i := range records {
		room = packed.Append(room, &records[i])
	}
	m.note("pack", len(records), time.Since(began))
}
