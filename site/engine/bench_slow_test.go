package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/engine"
)

// stalling is a store whose commits take a time, and of which every 50th stalls.
type stalling struct {
	takes, stalls time.Duration
	commits       int
}

// Commit implements engine.Store.
func (s *stalling) Commit(*stored.Records) error {
	d := s.takes
	if s.commits++; s.commits%50 == 0 {
		d += s.stalls
	}
	<-time.After(d)
	return nil
}

// Confirm implements engine.Store.
func (*stalling) Confirm() error { return nil }

// onTheirWay is the time after which an answered caller of another process has asked again.
const onTheirWay = 200 * time.Microsecond

// BenchmarkEngineSlow measures acquires of 64 callers of another process, each of whom asks
// again 200 µs after an answer, over a store that takes long: a log in etcd, or a slow disk.
func BenchmarkEngineSlow(b *testing.B) {
	for _, s := range []stalling{
		{takes: time.Millisecond / 2},
		{takes: time.Millisecond},
		{takes: 2 * time.Millisecond},
		{takes: 4 * time.Millisecond},
		{takes: 16 * time.Millisecond},
		{takes: 4 * time.Millisecond, stalls: 100 * time.Millisecond},
		{takes: 32 * time.Millisecond},
	} {
		b.Run(fmt.Sprintf("takes=%v/stalls=%v", s.takes, s.stalls), func(b *testing.B) {
			r := start(b, &s, 100)
			r.pause = onTheirWay
			m := r.meter(b)
			r.oneByOne(b, b.N)
			m.report(b)
		})
	}
}

// BenchmarkEngineParted measures durable acquires at a site of several partitions, of 64
// callers one at a time, and of 8 callers a hundred at a time.
func BenchmarkEngineParted(b *testing.B) {
	for _, batches := range []bool{false, true} {
		b.Run(fmt.Sprintf("batches=%t", batches), func(b *testing.B) {
			r := startParted(b, open(b), 2)
			for i := range 10_000 {
				r.names = append(r.names, entityName(i))
			}
			r.zipf = newZipf(len(r.names))
			r.create(b, r.names, "")
			m := r.meter(b)
			if batches {
				r.inBatches(b, b.N, 8, 100)
			} else {
				r.oneByOne(b, b.N)
			}
			m.report(b)
		})
	}
}

var _ engine.Store = (*stalling)(nil)
