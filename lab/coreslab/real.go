package coreslab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/lab/compare"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Site is a real site, which is compared with the model.
type Site struct {
	// Bin is the samya program, Dir a directory for the site's data, on the disk to sync.
	Bin, Dir string
	// Cores are the cores of the site and of its clients, Partitions the shards of the site;
	// 1: none.
	Cores, Partitions int
	Entities          int
	Warmup, Time      time.Duration
}

const (
	// limit is a limit that no load reaches.
	limit = 1 << 50
	// maxMessage bounds a message in bytes, grace the end of a process.
	maxMessage = 16 << 20
	grace      = 10 * time.Second
	creators   = 64
	// mostTaken bounds the share of the cores that others take.
	mostTaken = .95
)

// Measure starts a site for each pair of callers and connections, and measures it. The
// result of a pair lacks the figures that the model alone has.
func (s *Site) Measure(ctx context.Context, callers []int, connections int) (_ []Result, err error) {
	undo, err := pin(s.Cores)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()
	dir, err := os.MkdirTemp(s.Dir, "cores-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := proc.Start(ctx, proc.Config{
		Bin: s.Bin, Dir: filepath.Clean(dir), Sites: []string{"one"}, Grace: grace,
		SiteArgs: []string{"--log-level", "error", "--request-retention", "1m0s", "--max-requests", "100000000", "--partitions", strconv.Itoa(s.Partitions)},
	})
	if err != nil {
		return nil, fmt.Errorf("start a site: %w", err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		err = errors.Join(err, cluster.Stop(end))
	}()
	at := cluster.Site(0)
	conn, err := grpc.NewClient("passthrough:///"+at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to a site: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := s.create(ctx, conn); err != nil {
		return nil, err
	}
	var all []Result
	for _, n := range callers {
		r, err := s.load(ctx, conn, at, n, connections)
		if err != nil {
			return nil, fmt.Errorf("%d callers: %w", n, err)
		}
		all = append(all, *r)
	}
	return all, nil
}

// create makes the entities.
func (s *Site) create(ctx context.Context, conn grpc.ClientConnInterface) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	client := samyav1.NewEntityServiceClient(conn)
	for i := range s.Entities {
		group.Go(func() error {
			_, err := client.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: entityName(i), Limit: limit}, grpc.WaitForReady(true))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create entities: %w", err)
	}
	return nil
}

func entityName(i int) string { return fmt.Sprintf("acme/%05d/vm", i) }

// drive is load on a server, and its figures.
type drive struct {
	conn                 *grpc.ClientConn
	addr                 string
	pid                  int
	entities             int
	callers, connections int
	cores                int // that others are watched on
	warmup, time         time.Duration

	took           time.Duration
	server, client time.Duration // of processors
	taken          float64       // of the cores, by others
	answers        int
	messages       int
	latencies      []float64 // µs, sorted
}

// run makes the load over connections of its own, and measures it.
func (d *drive) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var stop, counts atomic.Bool
	loads := make([]*load, d.connections)
	for i := range loads {
		loads[i] = newLoad(d.entities, d.callers/d.connections, rand.Uint64())
		group.Go(func() error { return loads[i].run(ctx, d.conn, d.addr, &stop, &counts) })
	}
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	warmed := wait(d.warmup)
	before, usageErr := compare.UsageOf([]int{d.pid})
	busyBefore, busyErr := busy(d.cores)
	began := time.Now()
	counts.Store(true)
	err := errors.Join(warmed, usageErr, busyErr, wait(d.time))
	counts.Store(false)
	d.took = time.Since(began)
	after, usageErr := compare.UsageOf([]int{d.pid})
	busyAfter, busyErr := busy(d.cores)
	stop.Store(true)
	if err = errors.Join(err, usageErr, busyErr, group.Wait()); err != nil {
		return err
	}
	for _, l := range loads {
		d.latencies = append(d.latencies, l.latencies...)
		d.answers += l.answers
		d.messages += l.messages
	}
	if d.answers == 0 {
		return errNone
	}
	slices.Sort(d.latencies)
	d.server, d.client = after.Server-before.Server, after.Client-before.Client
	if d.cores > 0 {
		others := busyAfter - busyBefore - d.server - d.client
		most := 1 - (d.server+d.client).Seconds()/d.took.Seconds()/float64(d.cores)
		d.taken = max(0, min(mostTaken, most, others.Seconds()/d.took.Seconds()/float64(d.cores)))
	}
	return nil
}

var errNone = errors.New("no call was answered in time")

// load measures the site under load.
func (s *Site) load(ctx context.Context, conn *grpc.ClientConn, at *proc.Process, callers, connections int) (*Result, error) {
	d := &drive{
		conn: conn, addr: at.GRPC, pid: at.PID(), entities: s.Entities, callers: callers, connections: connections,
		warmup: s.Warmup, time: s.Time, cores: s.Cores,
	}
	if err := d.run(ctx); err != nil {
		return nil, err
	}
	r := &Result{Design: Design(0).String(), Cores: s.Cores, Callers: callers, Rate: float64(d.answers) / d.took.Seconds()}
	if s.Partitions > 1 {
		r.Design = product.String()
	}
	n := len(d.latencies)
	r.P50, r.P99 = d.latencies[n/2], d.latencies[n*99/100]
	r.Nanos = float64((d.server + d.client).Nanoseconds()) / float64(d.answers)
	r.Taken, r.PerMessage = d.taken, float64(d.answers)/float64(d.messages)
	r.Used = (d.server + d.client).Seconds() / d.took.Seconds() / float64(s.Cores)
	return r, nil
}

// load is the callers of a connection. Callers that were answered together ask again
// together.
type load struct {
	callers int
	names   []string
	zipf    *zipf
	rnd     *rand.Rand
	out     samyav1.StreamRequest
	calls   []*samyav1.Call
	asked   []time.Time

	counting  *atomic.Bool
	answers   int
	latencies []float64 // µs
	messages  int
}

func newLoad(entities, callers int, seed uint64) *load {
	l := &load{callers: callers, zipf: newZipf(entities), rnd: rand.New(rand.NewPCG(seed, 5)), asked: make([]time.Time, callers), counting: new(atomic.Bool)} //nolint:gosec // a load
	for i := range entities {
		l.names = append(l.names, entityName(i))
	}
	for range callers {
		l.calls = append(l.calls, &samyav1.Call{Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Tokens: 1}}}})
	}
	return l
}

// call has a caller ask.
func (l *load) call(tag int, now time.Time) {
	c := l.calls[tag]
	c.Tag = uint64(tag) //nolint:gosec // a count
	a := c.GetOperation().GetAcquire()
	a.Entity = l.names[l.zipf.draw(l.rnd)]
	a.RequestId = strconv.FormatUint(l.rnd.Uint64(), 36) + strconv.FormatUint(l.rnd.Uint64(), 36)
	l.out.Calls = append(l.out.Calls, c)
	l.asked[tag] = now
}

var errNotGranted = errors.New("an acquire was not granted")

// next takes answers, and returns the next message.
func (l *load) next(in *samyav1.StreamResponse, now time.Time) (*samyav1.StreamRequest, error) {
	l.out.Calls = l.out.Calls[:0]
	counts := l.counting.Load()
	if counts {
		l.messages++
	}
	for _, r := range in.GetReplies() {
		if r.GetResult().GetAcquire().GetTokens() != 1 || r.GetTag() >= uint64(l.callers) { //nolint:gosec // a count
			return nil, fmt.Errorf("%w: %v", errNotGranted, r)
		}
		tag := int(r.GetTag()) //nolint:gosec // a count
		if counts {
			l.answers++
			l.latencies = append(l.latencies, float64(now.Sub(l.asked[tag]).Nanoseconds())/1e3)
		}
		l.call(tag, now)
	}
	return &l.out, nil
}

// run asks until stop is set, and takes the last answers.
func (l *load) run(ctx context.Context, conn *grpc.ClientConn, addr string, stop, counting *atomic.Bool) error {
	l.counting = counting
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	over := frames.New(conn, frames.Options{
		Authority: host, MaxMessage: maxMessage,
		Dial: func(ctx context.Context) (net.Conn, string, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return c, "", err
		},
	})
	stream, err := samyav1.NewTokenServiceClient(over).Stream(ctx)
	if err != nil {
		return fmt.Errorf("open a stream: %w", err)
	}
	now := time.Now()
	for i := range l.callers {
		l.call(i, now)
	}
	if err := stream.Send(&l.out); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	for open := l.callers; open > 0; {
		in, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("wait for answers: %w", err)
		}
		if len(in.GetReplies()) == 0 {
			continue // the window
		}
		out, err := l.next(in, time.Now())
		if err != nil {
			return err
		}
		if stop.Load() {
			open -= len(in.GetReplies())
			continue
		}
		if err := stream.Send(out); err != nil {
			return fmt.Errorf("ask: %w", err)
		}
	}
	return nil // the stream ends with ctx
}
