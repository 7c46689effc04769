package transports

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/lab/compare"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// entity is what callers acquire a token of.
const entity = "acme/vm"

// Sample is a measurement.
type Sample struct {
	compare.Sample
	// PerMessage is operations a message of the client.
	PerMessage float64 `json:"operations_per_message"`
}

// driver makes acquires over a way. All callers share a stream.
type driver struct {
	mux   *mux.Mux
	close func() error
	sent  *atomic.Int64 // messages
}

var _ compare.Driver = (*driver)(nil)

// open connects to a server.
func (s *server) open(ctx context.Context) (*driver, error) {
	conn, end, err := s.way.connect(ctx, s.addr, s.security)
	if err != nil {
		return nil, err
	}
	d := &driver{close: end, sent: new(atomic.Int64)}
	d.mux = mux.New(counted{conn, d.sent}, mux.Options{})
	return d, nil
}

// Acquire implements compare.Driver.
func (d *driver) Acquire(ctx context.Context, _ int, requests []compare.Request, granted []bool) error {
	for i, r := range requests {
		result, fate, err := d.mux.Do(ctx, &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
			Acquire: &samyav1.AcquireRequest{Entity: r.Entity, Tokens: 1, RequestId: r.ID},
		}})
		if err != nil {
			return fmt.Errorf("an acquire is %s: %w", fate, err)
		}
		a := result.GetAcquire()
		granted[i] = a.GetTokens() == 1 && a.GetRequestId() == r.ID
	}
	return nil
}

// Close implements compare.Driver.
func (d *driver) Close() error { return errors.Join(d.mux.Close(), d.close()) }

// measure has callers ask a server for a while. Each asks again once answered.
func (s *server) measure(ctx context.Context, callers int, warmup, span time.Duration) (_ *Sample, err error) {
	d, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var sent []int64 // at the beginning and at the end
	measured, err := compare.Measure(ctx, d, &compare.Load{
		Callers: callers, Batch: 1, Entities: []string{entity}, Draws: make([]uint32, callers), Prefix: "01M80QHAC47PM36QY8",
		Warmup: warmup, Time: span, Usage: func() (compare.Usage, error) {
			sent = append(sent, d.sent.Load())
			return compare.UsageOf([]int{s.process.PID()})
		},
	})
	if err != nil {
		return nil, err
	}
	sample := &Sample{Sample: *measured}
	if messages := sent[len(sent)-1] - sent[0]; messages > 0 {
		sample.PerMessage = float64(measured.Operations) / float64(messages)
	}
	return sample, nil
}

// counted counts the messages that streams of a connection send.
type counted struct {
	grpc.ClientConnInterface
	sent *atomic.Int64
}

// NewStream implements grpc.ClientConnInterface.
func (c counted) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, err
	}
	return countedStream{s, c.sent}, nil
}

// countedStream counts the messages that it sends.
type countedStream struct {
	grpc.ClientStream
	sent *atomic.Int64
}

// SendMsg implements grpc.ClientStream.
func (s countedStream) SendMsg(m any) error {
	s.sent.Add(1)
	return s.ClientStream.SendMsg(m)
}
