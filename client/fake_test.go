package client

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// world is a cluster of fake targets in simulated time. It keeps the books like sites: an
// attempt of a request undoes the earlier attempts at the sites that it names, and
// nowhere else.
type world struct {
	mu      sync.Mutex
	servers map[string]*server
	done    map[string][]attempt // by request id
	horizon time.Duration        // how far ahead not_after may be
	// acked is what each session has acknowledged. early are operations that arrive once they
	// were acknowledged, sessions counts the operations of sessions.
	acked    map[session.ID]uint64
	early    []string
	sessions int
}

// attempt is an attempt that a site has executed, or will never execute.
type attempt struct {
	number uint32
	site   string
	tokens int64 // acquired; negative: released
	undone bool
	late   map[string]bool // sites at which earlier attempts are refused; "": all
}

func newWorld() *world {
	return &world{servers: map[string]*server{}, done: map[string][]attempt{}, acked: map[session.ID]uint64{}, horizon: 290 * time.Second}
}

// site adds a target that is a site of its address's name.
func (w *world) site(name string, latency time.Duration) *server {
	s := &server{world: w, name: name, sites: []string{name}, latency: latency, state: connectivity.Ready, changed: make(chan struct{})}
	s.answer = s.execute
	w.servers[name] = s
	return s
}

// manager adds a target that hands calls on to sites in turn.
func (w *world) manager(name string, latency time.Duration, sites ...string) *server {
	s := w.site(name, latency)
	s.sites, s.front = sites, true
	return s
}

// config is the configuration of a client of all targets, in the order of their names.
// Each target is in the region of its name.
func (w *world) config(region string) Config {
	c := Config{Region: region, Random: func() float64 { return 0.5 }}
	for name := range w.servers {
		c.Targets = append(c.Targets, Target{Address: name, Region: name})
	}
	slices.SortFunc(c.Targets, func(a, b Target) int { return strings.Compare(a.Address, b.Address) })
	c.dial = func(t Target) (connection, error) { return &fakeConn{s: w.servers[t.Address]}, nil }
	return c
}

// held returns the tokens that are out by the books, and the ids with several executions
// that count.
func (w *world) held() (tokens int64, twice []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, as := range w.done {
		n := 0
		for _, a := range as {
			if !a.undone && a.tokens != 0 {
				tokens += a.tokens
				n++
			}
		}
		if n > 1 {
			twice = append(twice, id)
		}
	}
	return tokens, twice
}

// server is a target.
type server struct {
	world   *world
	name    string
	sites   []string
	term    int64 // of the node that runs the site
	front   bool
	latency time.Duration
	// answer makes the result of an operation that arrives; nil: no answer comes.
	answer func(op *samyav1.Operation) *samyav1.Result
	// redialled is told, if not nil, when a connection is to be made at once.
	redialled func()

	mu sync.Mutex
	// traces are the traces that the operations of streams told, traceparents those that other calls
	// told.
	traces       [][]byte
	traceparents []string
	state        connectivity.State
	changed      chan struct{} // closed when the state changes
	silent       bool          // it answers nothing, probes neither
	starting     bool          // it tells that it does not serve yet
	streams      []*fakeStream
	arrivals     int
	next         int // which of the sites is asked
	// told is the list of the members, nil for a build without lists; retold is closed when
	// the list changes. unwatched: its build has no watch. leases answers requests about a
	// lease; nil: the lease is here.
	told      *samyav1.ListMembersResponse
	retold    chan struct{}
	unwatched bool
	mute      bool // a watch tells a list, and then nothing
	nameless  bool // it does not tell what it is
	leases    func(name string) error
	probes    int // health checks answered
	closed    int // connections closed by clients
}

// set changes the state of the connections to s. A broken connection loses the calls
// under way.
func (s *server) set(state connectivity.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
	if state != connectivity.Ready {
		s.cutLocked()
	}
}

// cut breaks the streams that are open. Their calls still arrive.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *server) cutLocked() {
	for _, st := range s.streams {
		st.end(status.Error(codes.Unavailable, "cut by the test"))
	}
	s.streams = nil
}

func (s *server) arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrivals
}

func (s *server) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent
}

func (s *server) setSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

func (s *server) setStarting(starting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = starting
}

// answers changes how operations are answered from then on.
func (s *server) answers(f func(op *samyav1.Operation) *samyav1.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// handle counts an operation that arrives, and answers it.
func (s *server) handle(op *samyav1.Operation) *samyav1.Result {
	s.mu.Lock()
	s.arrivals++
	answer := s.answer
	s.mu.Unlock()
	return answer(op)
}

// asked holds the fields of an operation about its attempts.
type asked interface {
	GetRequestId() string
	GetAttempt() uint32
	GetTried() []string
	GetTokens() int64
	GetAcknowledged() uint64
}

func partsOf(op *samyav1.Operation) (_ asked, notAfter time.Time, sign int64) {
	if a := op.GetAcquire(); a != nil {
		return a, a.GetNotAfter().AsTime(), 1
	}
	return op.GetRelease(), op.GetRelease().GetNotAfter().AsTime(), -1
}

// execute runs an operation at the next of the server's sites, like a real site.
func (s *server) execute(op *samyav1.Operation) *samyav1.Result {
	s.mu.Lock()
	at := s.sites[s.next%len(s.sites)]
	s.next++
	s.mu.Unlock()
	return s.world.execute(at, op)
}

func (w *world) execute(at string, op *samyav1.Operation) *samyav1.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, notAfter, sign := partsOf(op)
	number := max(1, r.GetAttempt())
	switch now := time.Now(); {
	case now.After(notAfter):
		return refuse(apierr.RequestExpired)
	case notAfter.After(now.Add(w.horizon)):
		return refuse(apierr.InvalidField)
	}
	w.acknowledge(r)
	as := w.done[r.GetRequestId()]
	for _, a := range as {
		switch {
		case a.number > number && (a.site == at || a.late[at] || a.late[""]):
			return refuse(apierr.Superseded)
		case a.number == number && a.site == at:
			return result(op, at)
		}
	}
	made := attempt{number: number, site: at, tokens: sign * r.GetTokens(), late: map[string]bool{}}
	for i := range as {
		a := &as[i]
		switch {
		case a.number >= number:
		case a.site == at && !a.undone:
			// The later attempt takes over the execution at this site.
			a.undone = true
		case slices.Contains(r.GetTried(), a.site) || len(r.GetTried()) == 0:
			a.undone = true
		}
	}
	for _, t := range r.GetTried() {
		made.late[t] = true
	}
	if number > 1 && len(r.GetTried()) == 0 {
		made.late[""] = true
	}
	w.done[r.GetRequestId()] = append(as, made)
	return result(op, at)
}

// acknowledge notes what an operation acknowledges. No operation may come once it is
// acknowledged, or acknowledge another that has more than one attempt.
func (w *world) acknowledge(r asked) {
	id, sequence, ok := session.Parse(r.GetRequestId())
	if !ok {
		if r.GetAcknowledged() > 0 {
			w.early = append(w.early, r.GetRequestId()+" acknowledges without a session")
		}
		return
	}
	w.sessions++
	before := w.acked[id]
	if sequence < before {
		w.early = append(w.early, r.GetRequestId()+" comes after its acknowledgement")
	}
	for s := before; s < r.GetAcknowledged(); s++ {
		of := string(session.Append([]byte(id.Text()), s))
		if as := w.done[of]; len(as) > 1 || len(as) == 1 && as[0].number > 1 {
			w.early = append(w.early, of+" has several attempts, and is acknowledged")
		}
	}
	w.acked[id] = max(before, r.GetAcknowledged())
}

func result(op *samyav1.Operation, site string) *samyav1.Result {
	if a := op.GetAcquire(); a != nil {
		return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{
			Tokens: a.GetTokens(), RequestId: a.GetRequestId(), Site: site,
		}}}
	}
	r := op.GetRelease()
	return &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{
		Tokens: r.GetTokens(), RequestId: r.GetRequestId(), Site: site,
	}}}
}

func refuse(r apierr.Reason) *samyav1.Result { return failed(&apierr.Error{Reason: r}) }

func failed(e *apierr.Error) *samyav1.Result {
	return &samyav1.Result{Result: &samyav1.Result_Failure{Failure: e.Failure()}}
}

// fakeConn is a connection to a server.
type fakeConn struct {
	grpc.ClientConnInterface
	s *server
}

func (c *fakeConn) GetState() connectivity.State {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.state
}

func (c *fakeConn) WaitForStateChange(ctx context.Context, from connectivity.State) bool {
	c.s.mu.Lock()
	changed, state := c.s.changed, c.s.state
	c.s.mu.Unlock()
	if state != from {
		return true
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (*fakeConn) Connect() {}

func (c *fakeConn) ResetConnectBackoff() {
	if c.s.redialled != nil {
		c.s.redialled()
	}
}

func (c *fakeConn) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.closed++
	return nil
}

func (c *fakeConn) Invoke(ctx context.Context, _ string, req, resp any, opts ...grpc.CallOption) error {
	if c.GetState() != connectivity.Ready {
		return status.Error(codes.Unavailable, "no connection")
	}
	for _, o := range opts {
		if p, ok := o.(grpc.PeerCallOption); ok {
			*p.PeerAddr = peer.Peer{Addr: &net.TCPAddr{}}
		}
	}
	if err := pause(ctx, 2*c.s.latency); err != nil || c.s.isSilent() {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	switch resp := resp.(type) {
	case *healthv1.HealthCheckResponse:
		resp.Status = healthv1.HealthCheckResponse_SERVING
		c.s.mu.Lock()
		if c.s.starting {
			resp.Status = healthv1.HealthCheckResponse_NOT_SERVING
		}
		c.s.probes++
		c.s.mu.Unlock()
	case *samyav1.ListSitesResponse:
		if c.s.nameless {
			return status.Error(codes.Unavailable, "not now")
		}
		if resp.AnsweredBy = "site/" + c.s.name; c.s.front {
			resp.AnsweredBy = c.s.name
		}
		resp.Sites = []*samyav1.Site{{Name: "as", Term: 99}, {Name: c.s.name, Term: c.s.term}}
	case *samyav1.BatchResponse:
		md, _ := metadata.FromOutgoingContext(ctx)
		c.s.mu.Lock()
		c.s.traceparents = append(c.s.traceparents, md.Get("traceparent")...)
		c.s.mu.Unlock()
		if r := req.(*samyav1.BatchRequest); r.GetAtomic() {
			return c.atomic(ctx, r, resp)
		}
		resp.Sessions = !c.s.front
		for _, op := range req.(*samyav1.BatchRequest).GetOperations() {
			resp.Results = append(resp.Results, c.s.handle(op))
		}
	case *samyav1.ListMembersResponse:
		list, _ := c.s.list()
		if list == nil {
			return status.Error(codes.Unimplemented, "no members here")
		}
		proto.Merge(resp, list)
	case *samyav1.RenewLeaseResponse:
		return c.s.lease(req.(*samyav1.RenewLeaseRequest).GetLease(), func(name string) {
			resp.Lease = &samyav1.Lease{Name: name, Remaining: req.(*samyav1.RenewLeaseRequest).GetTtl()}
		})
	case *samyav1.CommitLeaseResponse:
		return c.s.lease(req.(*samyav1.CommitLeaseRequest).GetLease(), func(string) { resp.Site = c.s.name })
	default:
		return status.Errorf(codes.Unimplemented, "%T", resp)
	}
	return nil
}

func (c *fakeConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == samyav1.ClusterService_WatchMembers_FullMethodName {
		return c.watch(ctx)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.state != connectivity.Ready {
		return nil, status.Error(codes.Unavailable, "no connection")
	}
	st := &fakeStream{ctx: ctx, s: c.s, out: make(chan *samyav1.StreamResponse, 1000), ended: make(chan struct{})}
	for _, o := range opts {
		if f, ok := o.(grpc.ForceCodecV2CallOption); ok {
			st.codec = f.CodecV2
		}
	}
	st.out <- &samyav1.StreamResponse{Window: 100, Sessions: !c.s.front}
	c.s.streams = append(c.s.streams, st)
	return st, nil
}

type fakeStream struct {
	grpc.ClientStream
	ctx   context.Context
	s     *server
	codec encoding.CodecV2
	out   chan *samyav1.StreamResponse
	ended chan struct{}
	err   error
}

func (st *fakeStream) end(err error) {
	st.err = err
	close(st.ended)
}

func (st *fakeStream) SendMsg(m any) error {
	data, err := st.codec.Marshal(m)
	if err != nil {
		return err
	}
	r := &samyav1.StreamRequest{}
	if err := proto.Unmarshal(data.Materialize(), r); err != nil {
		return err
	}
	select {
	case <-st.ended:
		return io.EOF
	default:
	}
	for _, c := range r.GetCalls() {
		go st.serve(c)
	}
	return nil
}

// serve answers a call. A call on a broken stream arrives all the same, and its answer is
// lost.
func (st *fakeStream) serve(c *samyav1.Call) {
	if pause(context.Background(), st.s.latency) != nil || st.s.isSilent() {
		return
	}
	st.s.mu.Lock()
	st.s.traces = append(st.s.traces, c.GetTrace())
	st.s.mu.Unlock()
	r := st.s.handle(c.GetOperation())
	if r == nil || pause(context.Background(), st.s.latency) != nil || st.s.isSilent() {
		return
	}
	select {
	case st.out <- &samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: c.GetTag(), Result: r}}}:
	case <-st.ended:
	case <-st.ctx.Done():
	}
}

func (st *fakeStream) RecvMsg(m any) error {
	select {
	case r := <-st.out:
		b, err := proto.Marshal(r)
		if err != nil {
			return err
		}
		return st.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m)
	case <-st.ctx.Done():
		return st.ctx.Err()
	case <-st.ended:
		return st.err
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// bubble runs a test in simulated time with a client in a region that knows its targets.
// synctest checks that nothing of the client is left running.
func bubble(t *testing.T, w *world, tweak func(*Config), region string, f func(c *Client)) {
	t.Helper()
	cfg := w.config(region)
	if tweak != nil {
		tweak(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := pause(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	f(c)
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("closing: %v", err)
	}
	synctest.Wait()
}

// books compares the tokens that are out by the books with the tokens that clients hold.
func (w *world) books(t *testing.T, want int64) {
	t.Helper()
	held, twice := w.held()
	if held != want || len(twice) > 0 {
		t.Errorf("the books have %d tokens out, clients hold %d; counted twice: %v", held, want, twice)
	}
	if len(w.early) > 0 {
		t.Errorf("acknowledged too early: %v", w.early)
	}
}
