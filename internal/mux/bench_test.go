package mux_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Acquire implements samyav1.TokenServiceServer: the control.
func (s *server) Acquire(_ context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return granted(&samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}).GetAcquire(), nil
}

// BenchmarkCallers measures acquires of callers that each wait for their answer, to a
// server in this process that answers at once. The acquires go over a single stream, over
// gRPC and over frames, and as unary calls. The processor time is the time of both ends.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		s := &server{window: 16_384, answer: granted}
		conn := listen(b, s)
		for name, over := range map[string]grpc.ClientConnInterface{"stream": conn, "frames": listenFramed(b, s)} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				m := newMux(b, over)
				before := s.messages
				drive(b, callers, func(ctx context.Context, id string) error {
					_, _, err := m.Do(ctx, acquire(id))
					return err
				})
				b.ReportMetric(float64(b.N)/float64(s.messages-before), "ops/message")
			})
		}
		b.Run(fmt.Sprintf("unary/%d", callers), func(b *testing.B) {
			client := samyav1.NewTokenServiceClient(conn)
			drive(b, callers, func(ctx context.Context, id string) error {
				_, err := client.Acquire(ctx, acquire(id).GetAcquire())
				return err
			})
		})
	}
}

// drive has callers make b.N calls together, each waiting for its answer.
func drive(b *testing.B, callers int, do func(ctx context.Context, id string) error) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Int64
	var wg sync.WaitGroup
	began := cpu(b)
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := do(ctx, "01M80QHAC47PM36QY8"+strconv.FormatInt(n, 10)); err != nil {
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
