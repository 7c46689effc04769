package mux_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestManyCallers: many callers share a real connection, and many of them give up at any
// time. Each is told its own answer, and the server finds its window kept.
func TestManyCallers(t *testing.T) {
	t.Run("over gRPC", func(t *testing.T) {
		manyCallers(t, func(t *testing.T, s *server) grpc.ClientConnInterface { t.Helper(); return listen(t, s) })
	})
	t.Run("over frames", func(t *testing.T) {
		manyCallers(t, func(t *testing.T, s *server) grpc.ClientConnInterface { t.Helper(); return listenFramed(t, s) })
	})
}

func manyCallers(t *testing.T, listen func(*testing.T, *server) grpc.ClientConnInterface) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		// Now and then a call is held back until it is cancelled.
		s := &server{window: 40, answer: func(op *samyav1.Operation) *samyav1.Result {
			if op.GetAcquire().GetEntity() == "held" {
				return nil
			}
			return granted(op)
		}}
		m := newMux(t, listen(t, s))
		var wg sync.WaitGroup
		var answered atomic.Int64
		for caller := range 100 {
			wg.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					hurried := rand.N(4) == 0
					if hurried {
						ctx, cancel = context.WithTimeout(ctx, rand.N(200*time.Microsecond))
					}
					id := fmt.Sprintf("%d-%d", caller, i)
					op := acquire(id)
					if hurried && i%2 == 0 {
						op.GetAcquire().Entity = "held"
					}
					r, fate, err := m.Do(ctx, op)
					cancel()
					switch {
					case fate == mux.Answered && err == nil:
						answered.Add(1)
						if got := r.GetAcquire().GetRequestId(); got != id && r.GetFailure() == nil {
							t.Errorf("%s is told the answer of %q", id, got)
						}
					case !hurried || !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("%s: %v, %v", id, fate, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if answered.Load() < 100*100 {
			t.Errorf("%d calls were answered", answered.Load())
		}
	})
}

// TestFailureIsAnAnswer: a failure given by a server answers its operation.
func TestFailureIsAnAnswer(t *testing.T) {
	s := &server{window: 40, answer: func(*samyav1.Operation) *samyav1.Result { return failure(8, "no tokens") }}
	m := newMux(t, listen(t, s))
	r, fate, err := m.Do(t.Context(), acquire("a"))
	if fate != mux.Answered || err != nil || r.GetFailure().GetMessage() != "no tokens" {
		t.Errorf("%v, %v, %v", r, fate, err)
	}
}

// TestUnreachable: nothing listens there.
func TestUnreachable(t *testing.T) {
	m := newMux(t, listenNowhere(t))
	if _, fate, err := m.Do(t.Context(), acquire("a")); fate != mux.Unsent || status.Code(err) != codes.Unavailable {
		t.Errorf("%v, %v; want unsent, Unavailable", fate, err)
	}
}

// unaryOnly serves no streams.
type unaryOnly struct {
	samyav1.UnimplementedTokenServiceServer
	acquire func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error)
}

func (s unaryOnly) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return s.acquire(ctx, r)
}

func TestServerWithoutStreams(t *testing.T) {
	held := make(chan struct{})
	m := newMux(t, listen(t, unaryOnly{acquire: func(ctx context.Context, r *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		switch r.GetRequestId() {
		case "refused":
			return nil, refuse.NoTokens("acme/vm", "us", 1, 0, time.Second)
		case "held":
			close(held)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &samyav1.AcquireResponse{RequestId: r.GetRequestId()}, nil
	}}))
	for _, id := range []string{"a", "b"} {
		r, fate, err := m.Do(t.Context(), acquire(id))
		if fate != mux.Answered || err != nil || r.GetAcquire().GetRequestId() != id {
			t.Errorf("%s: %v, %v, %v", id, r, fate, err)
		}
	}
	if r, fate, err := m.Do(t.Context(), acquire("refused")); fate != mux.Answered || err != nil ||
		codes.Code(r.GetFailure().GetCode()) != codes.ResourceExhausted || len(r.GetFailure().GetDetails()) == 0 {
		t.Errorf("refused: %v, %v, %v", r, fate, err)
	}
	if r, fate, err := m.Do(t.Context(), &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{}}}); fate != mux.Answered ||
		codes.Code(r.GetFailure().GetCode()) != codes.Unimplemented {
		t.Errorf("a call that the server does not know: %v, %v, %v", r, fate, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-held
		cancel()
	}()
	if _, fate, err := m.Do(ctx, acquire("held")); fate != mux.Lost || status.Code(err) != codes.Canceled {
		t.Errorf("held: %v, %v; want lost, Canceled", fate, err)
	}
}

func TestUnaryToNobody(t *testing.T) {
	conn := listen(t, unaryOnly{acquire: func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		return &samyav1.AcquireResponse{}, nil
	}})
	m := newMux(t, conn)
	if _, fate, err := m.Do(t.Context(), acquire("a")); fate != mux.Answered || err != nil {
		t.Fatalf("%v, %v", fate, err)
	}
	conn.Close()
	if _, fate, err := m.Do(t.Context(), acquire("b")); fate != mux.Unsent || err == nil {
		t.Errorf("%v, %v; want unsent, and an error", fate, err)
	}
}
