package compare

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Load is the load of a measurement.
type Load struct {
	// Callers, Batch and Offered are as in [Way].
	Callers, Batch int
	Offered        int
	// Entities are the names. Draws are the indices that the operations ask for in
	// turn.
	Entities []string
	Draws    []uint32
	// Prefix begins every request id; each load on a system has its own. Empty: the driver
	// names the requests.
	Prefix string
	// Warmup is the time before the measured Time.
	Warmup, Time time.Duration
	// Usage returns the processor time so far; see [Usage].
	Usage func() (Usage, error)
}

// Sample is a measurement of a cell.
type Sample struct {
	// Operations is the number of operations answered within Seconds.
	Operations int64   `json:"operations"`
	Seconds    float64 `json:"seconds"`
	// Rate is operations a second.
	Rate float64 `json:"rate"`
	// P50, P99 and P999 are latencies of calls in µs, to 1 in 100. A call counts
	// once for each of its operations. In an open loop they count from when a call was due.
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	// ServerCPU and ClientCPU are µs of processor time an operation, of the system's
	// processes and of this process; 0 if unknown.
	ServerCPU float64 `json:"server_cpu_us"`
	ClientCPU float64 `json:"client_cpu_us"`

	granted []int64 // by entity, with warm-up and end
}

// The phases of a load.
const (
	warming int32 = iota
	measuring
	ending
)

const (
	// drainTime bounds the wait for the last answers.
	drainTime = 30 * time.Second
	// The highest latency kept, in µs, and the precision of latencies, in digits.
	maxLatency       = int64(60 * time.Second / time.Microsecond)
	latencyPrecision = 2
)

var (
	errRefused = errors.New("an operation was refused though there are tokens")
	errStuck   = errors.New("not all operations were answered")
	errNone    = errors.New("no operation was answered in time")
)

// drive makes load and measures it. It returns the error of the first failed
// operation.
func drive(parent context.Context, d Driver, l *Load) (*Sample, error) {
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	// No deadline: clients would send it to the servers.
	stuck := time.AfterFunc(l.Warmup+l.Time+drainTime, func() { fail(errStuck) })
	defer stuck.Stop()
	var phase atomic.Int32
	var measured atomic.Int64
	granted := make([]atomic.Int64, len(l.Entities))
	latencies := make([]*hdrhistogram.Histogram, l.Callers)
	began := time.Now()
	for i := range latencies {
		latencies[i] = hdrhistogram.New(1, maxLatency, latencyPrecision)
	}
	var callers sync.WaitGroup
	for i := range l.Callers {
		callers.Go(func() {
			c := caller{load: l, number: i, began: began, latency: latencies[i], granted: granted}
			n, err := c.run(ctx, d, &phase)
			measured.Add(n)
			if err != nil {
				fail(err)
			}
		})
	}
	s := &Sample{}
	err := s.watch(ctx, l, &phase)
	phase.Store(ending)
	if err != nil {
		fail(err)
	}
	callers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	all := latencies[0]
	for _, h := range latencies[1:] {
		all.Merge(h)
	}
	if s.Operations = measured.Load(); s.Operations == 0 {
		return nil, errNone
	}
	s.P50, s.P99, s.P999 = float64(all.ValueAtQuantile(50)), float64(all.ValueAtQuantile(99)), float64(all.ValueAtQuantile(99.9))
	s.granted = make([]int64, len(granted))
	for i := range granted {
		s.granted[i] = granted[i].Load()
	}
	s.perOperation()
	return s, nil
}

// watch runs the phases, and takes the time and the processor time of the measured
// phase.
func (s *Sample) watch(ctx context.Context, l *Load, phase *atomic.Int32) error {
	if err := wait(ctx, l.Warmup); err != nil {
		return err
	}
	before, err := l.Usage()
	if err != nil {
		return err
	}
	began := time.Now()
	phase.Store(measuring)
	if err := wait(ctx, l.Time); err != nil {
		return err
	}
	phase.Store(ending)
	s.Seconds = time.Since(began).Seconds()
	after, err := l.Usage()
	if err != nil {
		return err
	}
	s.ServerCPU = (after.Server - before.Server).Seconds()
	s.ClientCPU = (after.Client - before.Client).Seconds()
	return nil
}

// perOperation divides the counts by the operations.
func (s *Sample) perOperation() {
	const microseconds = 1e6
	n := float64(s.Operations)
	s.Rate = n / s.Seconds
	s.ServerCPU *= microseconds / n
	s.ClientCPU *= microseconds / n
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// every is the time between two calls of a caller of an open loop.
func (l *Load) every() time.Duration {
	return time.Second * time.Duration(l.Callers*l.Batch) / time.Duration(l.Offered)
}

// caller is a caller of a load.
type caller struct {
	load    *Load
	number  int
	began   time.Time // when the load began
	latency *hdrhistogram.Histogram
	granted []atomic.Int64
}

// run asks until the load ends. It returns the number of operations answered in the
// measured phase.
func (c *caller) run(ctx context.Context, d Driver, phase *atomic.Int32) (int64, error) {
	l := c.load
	requests, granted, asked := make([]Request, l.Batch), make([]bool, l.Batch), make([]uint32, l.Batch)
	prefix := fmt.Sprintf("%s-%d-", l.Prefix, c.number)
	id := make([]byte, 0, len(prefix)+20)
	at := c.number * (len(l.Draws) / l.Callers)
	var measured int64
	due := c.began
	if l.Offered > 0 {
		due = due.Add(l.every() / time.Duration(l.Callers) * time.Duration(c.number))
	}
	for next := uint64(0); phase.Load() != ending; {
		for i := range requests {
			asked[i] = l.Draws[at%len(l.Draws)]
			at++
			next++
			requests[i].Entity = l.Entities[asked[i]]
			if l.Prefix != "" {
				id = strconv.AppendUint(append(id[:0], prefix...), next, 36)
				requests[i].ID = string(id)
			}
		}
		began := time.Now()
		if l.Offered > 0 {
			if err := wait(ctx, time.Until(due)); err != nil {
				return measured, err
			}
			began, due = due, due.Add(l.every())
		}
		if err := d.Acquire(ctx, c.number, requests, granted); err != nil {
			return measured, err
		}
		took := time.Since(began)
		for i, ok := range granted {
			if !ok {
				return measured, fmt.Errorf("request %s of %s: %w", requests[i].ID, requests[i].Entity, errRefused)
			}
			c.granted[asked[i]].Add(1)
		}
		if phase.Load() == measuring {
			measured += int64(l.Batch)
			// The histogram keeps a higher latency as maxLatency.
			if err := c.latency.RecordValues(min(took.Microseconds(), maxLatency), int64(l.Batch)); err != nil {
				return measured, fmt.Errorf("record a latency: %w", err)
			}
		}
	}
	return measured, nil
}
