// Package earlylab has the applications of the paper on early scheduling, and measures
// how fast the modes of package kvpart/early run them: on this machine's cores, or in
// virtual time with more threads than it has cores. It does not judge the order of
// requests: the tests of kvpart/early do. It only compares the final states.
package earlylab

import (
	"math/rand/v2"

	"github.com/tidwall/btree"
)

// app is an application whose state is in shards. Reads may run at the same time.
type app interface {
	// read looks a value up in a shard, write stores it there.
	read(shard int, value uint64) bool
	write(shard int, value uint64)
	// sum is a checksum of the state.
	sum() uint64
}

// lists is a sorted linked list for each shard (the paper, Section 5.2). An operation
// walks the list: the longer the list, the dearer the operation.
type lists []*element

type element struct {
	value uint64
	next  *element
}

// newLists makes lists of n even values each.
func newLists(shards, n int) lists {
	l := make(lists, shards)
	for s := range l {
		for i := n - 1; i >= 0; i-- {
			l[s] = &element{value: uint64(i) * 2, next: l[s]}
		}
	}
	return l
}

func (l lists) read(shard int, value uint64) bool {
	e := l[shard]
	for e != nil && e.value < value {
		e = e.next
	}
	return e != nil && e.value == value
}

// write adds the value. A list that has it already stays as it is, as in the paper: a
// list keeps its length, so that all requests cost the same.
func (l lists) write(shard int, value uint64) {
	at := &l[shard]
	for *at != nil && (*at).value < value {
		at = &(*at).next
	}
	if *at == nil || (*at).value != value {
		*at = &element{value: value, next: *at}
	}
}

func (l lists) sum() (h uint64) {
	for s, e := range l {
		for ; e != nil; e = e.next {
			h = (h ^ e.value ^ uint64(s)) * 0x100000001b3
		}
	}
	return h
}

// stores is a tree of keys for each shard (the paper, Section 5.5).
type stores []*btree.Map[uint64, uint64]

func newStores(shards, n int) stores {
	s := make(stores, shards)
	for i := range s {
		s[i] = new(btree.Map[uint64, uint64])
		for k := range uint64(n / shards) {
			s[i].Set(k, 0)
		}
	}
	return s
}

func (s stores) read(shard int, key uint64) bool {
	_, found := s[shard].Get(key)
	return found
}

func (s stores) write(shard int, key uint64) {
	v, _ := s[shard].Get(key)
	s[shard].Set(key, v*31+1)
}

func (s stores) sum() (h uint64) {
	for i, m := range s {
		m.Scan(func(k, v uint64) bool {
			h = (h ^ k ^ v ^ uint64(i)) * 0x100000001b3
			return true
		})
	}
	return h
}

// request is a request of the workload: early.Job.
type request struct {
	app   app
	class int
	// shard is the first shard, n the number of shards that it uses.
	shard, n int
	write    bool
	value    uint64
	found    bool
}

// Run implements early.Job.
func (r *request) Run(int) {
	for s := r.shard; s < r.shard+r.n; s++ {
		if r.write {
			r.app.write(s, r.value)
		} else {
			r.found = r.app.read(s, r.value)
		}
	}
}

// trace makes the requests of a workload, in runs: reads between two writes have
// exponential length, as in the paper's clients.
func (o *Options) trace(seed uint64) []*request {
	rnd := rand.New(rand.NewPCG(seed, 22))
	rs := make([]*request, o.Requests)
	pause := func() float64 {
		if o.Writes == 0 {
			return float64(o.Requests) + 1
		}
		return rnd.ExpFloat64() * (1 - o.Writes) / o.Writes
	}
	untilWrite := pause()
	for i := range rs {
		r := &request{n: 1, value: rnd.Uint64N(uint64(o.values())) * 2, write: untilWrite < 1}
		if o.App == KV {
			r.value /= 2
		}
		if untilWrite--; r.write {
			untilWrite = pause()
		}
		switch {
		case o.Shards > 1 && rnd.Float64() < o.Global:
			r.n, r.class = o.Shards, 2*o.Shards
		case o.Skew > 0 && rnd.Float64() < o.Skew:
			r.shard = 0
		default:
			r.shard = rnd.IntN(o.Shards)
		}
		if r.n == 1 {
			r.class = 2 * r.shard
		}
		if r.write {
			r.class++
		}
		rs[i] = r
	}
	return rs
}
