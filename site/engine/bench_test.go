package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/engine"
	"github.com/samya-db/samya/site/store"
)

const callers = 64

type silence struct{}

func (silence) Committed(int, time.Duration) {}
func (silence) Happened(core.Event)          {}
func (silence) Send([]core.Envelope)         {}

// benchDir returns a new directory on the file system of the work tree, so
// that a sync is one: temporary directories are in memory on some machines.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(".", "bench-*.tmp")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start runs an engine of a cluster of one site with entities of a limit that
// no benchmark reaches.
func start(b *testing.B, entities int) *engine.Engine {
	b.Helper()
	st, err := store.Open(store.Options{Dir: benchDir(b), Cluster: "bench", Site: "us", Members: []core.SiteID{"us"}})
	if err != nil {
		b.Fatal(err)
	}
	c, err := core.New(core.Config{
		Self: "us", Members: []core.SiteID{"us"}, Rand: rand.New(rand.NewPCG(1, 2)), Retention: 10_000,
	}, core.Restored{})
	if err != nil {
		b.Fatal(err)
	}
	e := engine.New(engine.Config{Core: c, Store: st, Sender: silence{}, Observer: silence{}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	pending := make(chan error, entities)
	for i := range entities {
		go func() {
			a, err := e.Do(ctx, func(call core.Call) core.Input {
				return &core.Change{
					Call: call, Kind: core.CreateEntity, Name: entityName(i), Limit: core.MaxTokens,
					RequestID: fmt.Sprint("create-", i), Wait: 60_000,
				}
			})
			if err == nil && a.Code != core.OK {
				err = fmt.Errorf("create: %v", a.Code)
			}
			pending <- err
		}()
	}
	for range entities {
		if err := <-pending; err != nil {
			b.Fatal(err)
		}
	}
	return e
}

func entityName(i int) string { return fmt.Sprintf("acme/%05d/vm", i) }

// BenchmarkEngine measures durable acquires in process: 64 callers, each
// operation with an id of its own that is persisted with it. On 2 cores with a
// sync of 0.1 ms: 140,000 a second on one entity at 4.5 µs of processor time
// each, 53,000 on 10,000 entities at 14 µs, whose books lie on scattered pages.
func BenchmarkEngine(b *testing.B) {
	for _, entities := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			e := start(b, entities)
			names := make([]string, entities)
			for i := range names {
				names[i] = entityName(i)
			}
			var ids, caller atomic.Uint64
			b.SetParallelism(callers / runtime.GOMAXPROCS(0))
			before := cpu()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				rnd := rand.New(rand.NewPCG(caller.Add(1), 0))
				for pb.Next() {
					in := &core.Acquire{Entity: names[rnd.IntN(entities)], Tokens: 1, Wait: 1000}
					binary.BigEndian.PutUint64(in.Request[:], ids.Add(1))
					a, err := e.Do(context.Background(), func(call core.Call) core.Input { in.Call = call; return in })
					if err != nil || a.Code != core.OK {
						b.Errorf("acquire: %v %v", a.Code, err)
						return
					}
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu is the processor time that this process has used, in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkStoreAlone is the control of BenchmarkEngine: commits of as many
// records as there are callers, one after the other, with nothing around them.
// It bounds what an engine with one commit under way can reach.
func BenchmarkStoreAlone(b *testing.B) {
	for _, entities := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("entities=%d", entities), func(b *testing.B) {
			st, err := store.Open(store.Options{
				Dir: benchDir(b), Cluster: "bench", Site: "us", Members: []core.SiteID{"us"},
			})
			if err != nil {
				b.Fatal(err)
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			var r core.Records
			for i := range entities {
				r.Books = append(r.Books, core.BooksRecord{Name: entityName(i), Generation: 1, Left: 1 << 40})
			}
			if err := st.Commit(&r); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += callers {
				r.Books, r.Block.Records = r.Books[:0], r.Block.Records[:0]
				for j := range callers {
					rec := core.RequestRecord{Body: uint64(j)}
					binary.BigEndian.PutUint64(rec.Key[:], uint64(i+j))
					r.Block.Records = append(r.Block.Records, rec)
					if j < entities {
						r.Books = append(r.Books, core.BooksRecord{
							Name: entityName(rnd.IntN(entities)), Generation: 1, Left: core.Tokens(i),
						})
					}
				}
				r.Block.Sequence++
				if n := r.Block.Sequence; n%64 == 0 && n > 4096 {
					r.ForgetBlocks = n - 4096
				}
				if err := st.Commit(&r); err != nil {
					b.Fatal(err)
				}
				r.ForgetBlocks = 0
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			if err := st.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
