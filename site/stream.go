package site

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/engine"
)

const (
	// streamWindow is the most calls of a stream without an answer.
	streamWindow = 16384
	// maxReplies and failureBytes bound a message of answers far below the limit of
	// clients: the number of answers, and the bytes of failures.
	maxReplies   = 2048
	failureBytes = 1 << 20
)

// Stream implements samyav1.TokenServiceServer.
func (s tokens) Stream(rpc samyav1.TokenService_StreamServer) error {
	st := newStream(s.Site, s.engine)
	if q := frames.Quickly(rpc.Context()); q != nil {
		st.Quick = q
	}
	return st.Serve(rpc)
}

// starter is the part of the engine that a stream needs.
type starter interface {
	Start(calls []*engine.Call) error
	Cancel(c *engine.Call) bool
}

// stream is the mux.Handler of a stream.
type stream struct {
	mux.Server[operation, *operation]
	site   *Site
	engine starter
	// calls are about to be begun.
	calls []*engine.Call
	// made is the memory of the last results.
	made results
	// roots begin traces of operations that come without one.
	roots tracing.Roots
}

func newStream(s *Site, e starter) *stream {
	st := &stream{site: s, engine: e}
	st.Handler, st.Window, st.MaxReplies, st.Expires, st.Passing = st, streamWindow, maxReplies, true, true
	st.Stopping = s.closing
	st.Sessions = func() bool { return knowSessions(s.speaks.Load()) }
	st.Stopped = apierr.New(apierr.ShuttingDown, "site %s is about to stop; what has no answer was not begun", s.cfg.Name)
	return st
}

// Read implements mux.Handler. Malformed operations fail at once.
func (st *stream) Read(o *operation, c *samyav1.Call) {
	o.to, o.traced, o.Traced = st, nil, nil
	if t := st.site.cfg.Traces; t != nil {
		o.traced = begin(t, c, &st.roots)
	}
	left := forEver
	if !o.Deadline.IsZero() {
		left = o.Deadline.Sub(o.Began)
	}
	if o.err = st.site.read(o, c.GetOperation(), left); o.err != nil {
		st.Answered(o)
		return
	}
	if o.traced != nil {
		o.Traced, o.acquire.Trace = o.durable(), o.context()
	}
	st.calls = append(st.calls, &o.Call)
}

// told implements answeree.
func (st *stream) told(o *operation) engine.Flusher {
	if st.Gather(o) {
		return &st.Server
	}
	return nil
}

// Start implements mux.Handler.
func (st *stream) Start(n int) {
	st.site.metrics.streamed.Observe(float64(n))
	if err := st.engine.Start(st.calls); err != nil {
		for _, c := range st.calls {
			o := c.To.(*operation)
			o.err = st.site.broken(err, o.asked)
			st.Answered(o)
		}
	}
	clear(st.calls)
	st.calls = st.calls[:0]
}

// Cancel implements mux.Handler.
func (st *stream) Cancel(o *operation, cause error) bool {
	if !st.engine.Cancel(&o.Call) {
		return false
	}
	o.err = st.site.broken(fmt.Errorf("waiting for an answer: %w", cause), o.asked)
	return true
}

// Answer implements mux.Handler.
func (st *stream) Answer(taken []*operation, replies []*samyav1.Reply) int {
	st.made.again()
	failures := 0
	t := st.site.metrics.tally(st.site.metrics.replies, len(taken))
	defer t.end()
	for i, o := range taken {
		r := replies[i]
		r.Tag = o.Tag
		err := st.made.of(st.site, r.Result, o)
		t.count(o, o.Began, err)
		if o.traced != nil {
			o.record(st.site, t.now, err)
		}
		if err != nil {
			if failures += proto.Size(r.Result); failures > failureBytes {
				return i + 1
			}
		}
	}
	return len(taken)
}
