package core

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// TestMemoryOfAnEntity bounds an entity's part of a core's heap, in bytes, by the events
// of the entity. Measured, on 64 bits, beside its name:
//
//   - 455 idle; 180 more, for the remembered request, once a request has moved its books
//   - 320 where four other sites have told of it
//   - 1,210 once a bin with demand has closed: its forecasting model, and another
//     request
func TestMemoryOfAnEntity(t *testing.T) {
	race.OneGoroutine(t)
	for _, tc := range []struct {
		members                    []SiteID
		idle, moved, heard, closed int
	}{
		{[]SiteID{"a"}, 470, 220, 10, 1400},
		{[]SiteID{"a", "b", "c", "d", "e"}, 470, 220, 400, 1400},
	} {
		t.Run(fmt.Sprintf("%d members", len(tc.members)), func(t *testing.T) {
			s := scale{t: t, now: input.Now{Tick: 1, Wall: 1_700_000_000_000}}
			for i := range 20_000 {
				s.names = append(s.names, fmt.Sprintf("acme/entity-%06d", i))
			}
			s.grows("idle", tc.idle, func() { s.start(tc.members) })
			s.grows("moved", tc.moved, s.acquireEach)
			s.grows("heard of", tc.heard, s.hearOfEach)
			s.now.Tick += 12_000
			s.grows("with a closed bin", tc.closed, s.acquireEach)
			runtime.KeepAlive(s.core)
		})
	}
}

// scale is a core with many entities.
type scale struct {
	t        *testing.T
	core     *Core
	names    []string
	now      input.Now
	requests uint64
}

// grows measures by how many bytes of heap an entity grows, and fails beyond most.
func (s *scale) grows(what string, most int, do func()) {
	before := liveHeap()
	do()
	grown := (liveHeap() - before) / len(s.names)
	s.t.Logf("%s: %d bytes", what, grown)
	if grown > most {
		s.t.Errorf("%s: %d bytes an entity, at most %d", what, grown, most)
	}
}

func liveHeap() int {
	runtime.GC()
	runtime.GC() // the second frees objects that the first found to be finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // some MB
}

func (s *scale) start(members []SiteID) {
	from := stored.Restored{Catalogue: &stored.Catalogue{Generation: uint64(len(s.names))}}
	for i, name := range s.names {
		g := uint64(i + 1) //nolint:gosec // small
		from.Entities = append(from.Entities, stored.Entity{Name: name, Generation: g, Initial: 1000, Limit: 1000, Version: 1})
		from.Books = append(from.Books, stored.Books{Name: name, Generation: g, Left: 1000})
	}
	var err error
	if s.core, err = New(Config{Self: "a", Members: members, Rand: rand.New(rand.NewPCG(1, 2))}, from); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scale) step(in input.Input) {
	s.core.Step(s.now, in)
	var out Effects
	s.core.Drain(&out)
}

func (s *scale) acquireEach() {
	for _, name := range s.names {
		s.requests++
		a := &input.Acquire{Call: name, Entity: name, Tokens: 1}
		binary.BigEndian.PutUint64(a.Request[:], s.requests)
		s.step(a)
	}
}

func (s *scale) hearOfEach() {
	for _, m := range s.core.cfg.Members[1:] {
		for i, name := range s.names {
			s.step(input.Deliver{From: m, Messages: []message.Envelope{{Gossip: &message.Gossip{From: m, To: "a", Summaries: []message.Summary{{
				Entity: name, Generation: uint64(i + 1), Left: 10, Median: 1, Target: 2, Busy: true, //nolint:gosec // small
			}}}}}})
		}
	}
}
