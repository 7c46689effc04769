package backends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// BenchmarkFollow measures how long requests wait while values follow their keys to
// another disk. Each operation of the benchmark moves a tenth of the keys to another
// partition and back to theirs with the next operation. Clients read and write keys by
// turns, some of them keys that move. Between the moves, in the same process, the clients
// go on without: the control.
//
// The metrics are in milliseconds: the 50th and 99th percentile and the maximum of a class
// of requests, by the control, while others move, and while they themselves move.
func BenchmarkFollow(b *testing.B) {
	for _, backend := range []string{"bbolt", "pebble"} {
		for _, size := range []int{100, 1 << 10, 16 << 10} {
			for _, strategy := range []kvpart.Strategy{kvpart.Hard, kvpart.HardThreaded} {
				b.Run(fmt.Sprintf("%s/%dB/%s", backend, size, strategy), func(b *testing.B) {
					followed(b, backend, size, strategy)
				})
			}
		}
	}
}

const (
	partitions = 4
	clients    = 2
	// quiet is the time without a moved value after which a move is over.
	quiet = 200 * time.Millisecond
)

// phases of the clients.
const (
	idle int32 = iota
	control
	moving
	ended
)

// sample is a request that was measured.
type sample struct {
	wrote bool
	moves bool // the key is among those that move
	phase int32
	began time.Time
	took  time.Duration
}

// span is when the first and the last value of a move followed.
type span struct{ from, to time.Time }

// during reports whether a sample is of the time in which values moved.
func (s sample) during(moves []span) bool {
	i := sort.Search(len(moves), func(i int) bool { return moves[i].to.After(s.began) })
	return i < len(moves) && s.began.Add(s.took).After(moves[i].from)
}

func followed(b *testing.B, backend string, size int, strategy kvpart.Strategy) {
	b.Helper()
	o := kvpart.Options{Strategy: strategy, Partitions: partitions, Backend: backend, Follow: true}
	for range partitions {
		o.Dirs = append(o.Dirs, b.TempDir())
	}
	s, err := kvpart.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	keys := min(40_000, 64<<20/size)
	load(b, s, keys, size)
	var phase atomic.Int32
	samples := make([][]sample, clients)
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() { samples[c] = client(b, s, uint64(c), keys, size, &phase) })
	}
	var values int64
	var spans []span
	var all time.Duration
	took := quiet
	for i := 0; b.Loop(); i++ {
		phase.Store(control)
		wait(b, took)
		phase.Store(moving)
		before := s.Stats().Followed
		at := span{from: time.Now()}
		if err := s.Reassign(func(key string) int { return home(key, keys, i%2 == 0) }); err != nil {
			b.Fatal(err)
		}
		at.to = settled(b, s)
		phase.Store(idle)
		spans = append(spans, at)
		took = at.to.Sub(at.from)
		all += took
		values += s.Stats().Followed - before
	}
	b.StopTimer()
	phase.Store(ended)
	running.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	of := slices.Concat(samples...)
	report(b, "read", spans, slices.DeleteFunc(slices.Clone(of), func(s sample) bool { return s.wrote }))
	report(b, "write", spans, slices.DeleteFunc(of, func(s sample) bool { return !s.wrote }))
	b.ReportMetric(float64(values)/float64(b.N), "values/op")
	b.ReportMetric(all.Seconds()*1e3/float64(b.N), "move-ms/op")
	b.ReportMetric(0, "ns/op")
}

// settled waits until values follow no more, and returns when the last did.
func settled(b *testing.B, s *kvpart.Store) time.Time {
	b.Helper()
	last, seen := time.Now(), s.Stats().Followed
	for time.Since(last) < quiet {
		wait(b, time.Millisecond)
		if now := s.Stats().Followed; now != seen {
			seen, last = now, time.Now()
		}
	}
	return last
}

// key and home: a key's partition by the map at rest, or by the map that has a tenth of
// the keys on the next partition.
func key(i int) string { return fmt.Sprintf("k%07d", i) }

func home(k string, keys int, away bool) int {
	var i int
	if _, err := fmt.Sscanf(k, "k%d", &i); err != nil {
		panic(err)
	}
	if away && i < keys/10 {
		return 1
	}
	return i * partitions / keys
}

func load(b *testing.B, s *kvpart.Store, keys, size int) {
	b.Helper()
	rng := rand.NewChaCha8([32]byte{})
	var all sync.WaitGroup
	for w := range 32 {
		value := make([]byte, size)
		_, _ = rng.Read(value)
		all.Go(func() {
			for i := w; i < keys; i += 32 {
				if err := s.Load(b.Context(), key(i), value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := s.Reassign(func(k string) int { return home(k, keys, false) }); err != nil {
		b.Fatal(err)
	}
	// The map of a new store is new to nearly all keys: they move to a new generation.
	for settled(b, s); s.Stats().Generations > 1; {
		settled(b, s)
	}
}

func wait(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

// client makes requests until the end, one after the other.
func client(b *testing.B, s *kvpart.Store, seed uint64, keys, size int, phase *atomic.Int32) (all []sample) {
	b.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	value := make([]byte, size)
	var read []byte
	for n := 0; ; n++ {
		at := phase.Load()
		if at == ended {
			return all
		}
		i := rng.IntN(keys)
		if n%4 < 2 {
			i = rng.IntN(keys / 10)
		}
		one := sample{wrote: n%8 == 7 || n%8 == 1, moves: i < keys/10, phase: at, began: time.Now()}
		var err error
		if one.wrote {
			err = s.Write(context.Background(), key(i), value)
		} else {
			read, err = s.Read(context.Background(), key(i), read[:0])
		}
		one.took = time.Since(one.began)
		if err != nil {
			b.Error(errors.Join(errors.New("a request failed"), err))
			return all
		}
		if at != idle {
			all = append(all, one)
		}
	}
}

// report reports the times of a kind of request.
func report(b *testing.B, kind string, spans []span, all []sample) {
	b.Helper()
	for _, class := range []struct {
		name string
		of   func(sample) bool
	}{
		{"control", func(s sample) bool { return s.phase == control }},
		{"others", func(s sample) bool { return s.phase == moving && !s.moves && s.during(spans) }},
		{"moved", func(s sample) bool { return s.phase == moving && s.moves && s.during(spans) }},
	} {
		var took []time.Duration
		for _, s := range all {
			if class.of(s) {
				took = append(took, s.took)
			}
		}
		if len(took) == 0 {
			b.Fatalf("no %s of %s", kind, class.name)
		}
		slices.Sort(took)
		for name, i := range map[string]int{"p50": len(took) / 2, "p99": len(took) * 99 / 100, "max": len(took) - 1} {
			b.ReportMetric(float64(took[i])/float64(time.Millisecond), fmt.Sprintf("%s-%s-%s-ms", kind, class.name, name))
		}
	}
}
