package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// watched answers watches at the targets of a world as a test says.
type watched struct {
	// tell returns the states of a stream at a target after a resume token, and how it ends:
	// nil if it stays open.
	tell func(target, token string) ([]*samyav1.WatchEntityResponse, error)

	mu    sync.Mutex
	asked []string // "target after token"
}

// client returns a client of two app managers whose watches w answers.
func (w *watched) client(t *testing.T) *Client {
	t.Helper()
	world := newWorld()
	world.manager("am-eu", time.Millisecond)
	world.manager("am-us", 2*time.Millisecond)
	cfg := world.config("")
	dial := cfg.dial
	cfg.dial = func(at Target) (connection, error) {
		conn, err := dial(at)
		return &watchedConn{connection: conn, w: w, target: at.Address}, err
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // a test may have closed it
	hearing(t)
	return c
}

type watchedConn struct {
	connection
	w      *watched
	target string
}

func (c *watchedConn) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != samyav1.EntityService_WatchEntity_FullMethodName {
		return c.connection.NewStream(ctx, d, method, opts...)
	}
	return &watchedStream{ctx: ctx, c: c}, nil
}

type watchedStream struct {
	grpc.ClientStream
	ctx    context.Context
	c      *watchedConn
	states []*samyav1.WatchEntityResponse
	end    error
}

func (s *watchedStream) SendMsg(m any) error {
	token := m.(*samyav1.WatchEntityRequest).GetResumeToken()
	s.c.w.mu.Lock()
	s.c.w.asked = append(s.c.w.asked, fmt.Sprintf("%s after %q", s.c.target, token))
	s.c.w.mu.Unlock()
	s.states, s.end = s.c.w.tell(s.c.target, token)
	return nil
}

func (*watchedStream) CloseSend() error { return nil }

func (s *watchedStream) RecvMsg(into any) error {
	if len(s.states) > 0 {
		proto.Merge(into.(*samyav1.WatchEntityResponse), s.states[0])
		s.states = s.states[1:]
		return nil
	}
	if s.end != nil {
		return s.end
	}
	<-s.ctx.Done()
	return status.FromContextError(s.ctx.Err()).Err()
}

// states returns states of limits from first to last, with tokens of the same numbers.
func states(first, last int64) []*samyav1.WatchEntityResponse {
	var all []*samyav1.WatchEntityResponse
	for limit := first; limit <= last; limit++ {
		all = append(all, &samyav1.WatchEntityResponse{
			Entity: &samyav1.Entity{Name: "acme/vm", Limit: limit}, ResumeToken: fmt.Sprint(limit),
		})
	}
	return all
}

// TestWatchResumes: a watch that breaks off goes on after its last state, at another target,
// and ends with the deletion.
func TestWatchResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{tell: func(target, token string) ([]*samyav1.WatchEntityResponse, error) {
			switch {
			case token == "" && target == "am-eu":
				return nil, nil // silent
			case token == "":
				return states(1, 3), apierr.New(apierr.ShuttingDown, "stopping")
			}
			all := states(4, 5)
			all[1].Deleted = true
			return all, nil
		}}
		c := w.client(t)
		var limits []int64
		for s, err := range c.Watch(t.Context(), "acme/vm", "") {
			if err != nil {
				t.Fatal(err)
			}
			if limits = append(limits, s.Limit); len(limits) > 5 {
				break
			}
			if s.Deleted != (s.Limit == 5) || s.ResumeToken != fmt.Sprint(s.Limit) {
				t.Errorf("state %+v", s)
			}
		}
		if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(limits, want) {
			t.Errorf("told %v, want %v", limits, want)
		}
		want := []string{`am-eu after ""`, `am-us after ""`, `am-eu after "3"`}
		if !slices.Equal(w.asked, want) {
			t.Errorf("asked %q, want %q", w.asked, want)
		}
	})
}

// TestWatchEnds: a watch ends with a refusal, with its context, with its client, as the loop
// is left, and if no target answers for long.
func TestWatchEnds(t *testing.T) {
	for what, test := range map[string]struct {
		end  error
		by   func(c *Client, cancel func())
		want error
		asks int
	}{
		"refused":     {end: apierr.NotFound("acme/vm"), want: ErrEntityNotFound, asks: 1},
		"canceled":    {by: func(_ *Client, cancel func()) { cancel() }, want: context.Canceled, asks: 1},
		"closed":      {by: func(c *Client, _ func()) { _ = c.Close(context.Background()) }, want: ErrClosed, asks: 1},
		"unavailable": {end: apierr.Unreachable(""), want: ErrUnavailable},
		"broken":      {end: status.Error(codes.Unavailable, "no connection"), want: ErrUnavailable},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watched{tell: func(_, token string) ([]*samyav1.WatchEntityResponse, error) {
					if token != "1" && test.by != nil {
						return states(1, 1), nil
					}
					return nil, test.end
				}}
				c := w.client(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				var last error
				for _, err := range c.Watch(ctx, "acme/vm", "") {
					last = err
					if err == nil {
						go test.by(c, cancel)
					}
				}
				if !errors.Is(last, test.want) {
					t.Errorf("ended with %v, want %v", last, test.want)
				}
				if test.asks != 0 && len(w.asked) != test.asks {
					t.Errorf("asked %q", w.asked)
				}
				if took := time.Since(began); took > resumeTime {
					t.Errorf("ended after %v", took)
				}
			})
		})
	}
}

// TestWatchIsLeft: a loop that is left ends its stream, and a watch resumes after a token.
func TestWatchIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{tell: func(string, string) ([]*samyav1.WatchEntityResponse, error) { return states(8, 9), nil }}
		c := w.client(t)
		for s, err := range c.Watch(t.Context(), "acme/vm", "7") {
			if err != nil || s.Limit != 8 {
				t.Errorf("told %+v, %v", s, err)
			}
			break
		}
		if want := []string{`am-eu after "7"`}; !slices.Equal(w.asked, want) {
			t.Errorf("asked %q, want %q", w.asked, want)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, err := range c.Watch(t.Context(), "acme/vm", "") {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("a watch of a closed client ends with %v", err)
			}
		}
	})
}

// TestViolations: an error tells each field at fault and its bound.
func TestViolations(t *testing.T) {
	e := public(apierr.InvalidFields(apierr.Violation{Field: "tokens", Problem: "must be at least 1"}))
	if want := []struct{ Field, Problem string }{{"tokens", "must be at least 1"}}; !slices.Equal(e.Violations, want) || !errors.Is(e, ErrInvalid) {
		t.Errorf("%+v", e)
	}
}
