package client_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/samya-db/samya/client"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// BenchmarkCallers measures durable acquires from a site that is a cluster by itself in
// this process. Each caller waits for its answer, and gives each acquire an id of its
// own. The acquires go through a Client, in batches of 100 through a Client, and as bare
// unary calls. The processor time is the time of both ends.
func BenchmarkCallers(b *testing.B) {
	cluster := sitetest.Start(b, []string{"us"}, nil)
	cluster.Create("acme/vm", 1<<50)
	c := newClient(b, client.Config{Region: "us", Targets: sites(cluster, "us")})
	tokens := cluster.Tokens("us")
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("client/%d", callers), func(b *testing.B) {
			drive(b, callers, 1, func(ctx context.Context) error {
				_, err := c.Acquire(ctx, "acme/vm", 1)
				return err
			})
		})
		b.Run(fmt.Sprintf("unary/%d", callers), func(b *testing.B) {
			drive(b, callers, 1, func(ctx context.Context) error {
				_, err := tokens.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: ulid.Make().String()})
				return err
			})
		})
	}
	b.Run("batch/16x100", func(b *testing.B) {
		drive(b, 16, 100, func(ctx context.Context) error {
			ops := make([]client.Op, 100)
			for i := range ops {
				ops[i] = client.AcquireOp("acme/vm", 1)
			}
			results, err := c.Batch(ctx, ops...)
			for _, r := range results {
				if r.Err != nil {
					return r.Err
				}
			}
			return err
		})
	})
}

// drive has callers make b.N operations together, in calls of each operations.
func drive(b *testing.B, callers, each int, do func(ctx context.Context) error) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Int64
	var wg sync.WaitGroup
	began := cpu(b)
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for next.Add(int64(each)) <= int64(b.N) {
				if err := do(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// cpu returns the processor time of this process so far, in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
