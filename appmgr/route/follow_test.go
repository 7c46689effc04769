package route

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// holding has a site hold all calls until the end of the test.
func holding(t *testing.T, f *fake.Site) {
	t.Helper()
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	f.OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		<-hold
		return nil, apierr.New(apierr.Internal, "too late")
	}
	f.OnBatch = func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
		<-hold
		return nil, apierr.New(apierr.Internal, "too late")
	}
	f.OnList = func() error { <-hold; return nil }
	f.OnRenew = func(*samyav1.RenewLeaseRequest) (*samyav1.RenewLeaseResponse, error) {
		<-hold
		return nil, apierr.New(apierr.Internal, "too late")
	}
}

// takeOver has site us run at another address from now on.
func (r *rig) takeOver() *fake.Site {
	to := &fake.Site{Name: "us", Members: []string{"us"}}
	to.Up()
	r.sites["elsewhere"] = to
	r.directory.Set(SiteInfo{Name: "us", Region: "us", Address: "elsewhere", Node: "b", Term: 9})
	return to
}

// TestTakeOver: calls that wait at the old address of a site end at once, though nothing
// breaks there. They go to the new address as far as they may be made twice.
func TestTakeOver(t *testing.T) {
	acquire := func(id string) func(*rig) error {
		return func(r *rig) error {
			_, err := r.acquire(r.t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: id})
			return err
		}
	}
	for what, tc := range map[string]struct {
		call func(*rig) error
		want apierr.Reason
	}{
		"an acquire":            {acquire("id-1"), ""},
		"an acquire without id": {acquire(""), apierr.OutcomeUnknown},
		"an acquire at this site": {func(r *rig) error {
			_, err := r.acquire(r.t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Site: "us"})
			return err
		}, ""},
		"an atomic batch": {func(r *rig) error {
			c := Call{RequestID: "id", Moves: r.router.Movement(fake.TwoOf("id"), 0), Until: time.Now().Add(10 * time.Second)}
			c.Moves.Batch = fake.TwoOf("id")
			for _, op := range c.Moves.Batch.GetOperations() {
				op.GetAcquire().Relay = 1
			}
			return r.router.Do(r.t.Context(), c)
		}, ""},
		"a read": {func(r *rig) error {
			return r.router.Do(r.t.Context(), Call{
				Method: samyav1.EntityService_ListEntities_FullMethodName, Read: true,
				Req: &samyav1.ListEntitiesRequest{}, Resp: &samyav1.ListEntitiesResponse{},
			})
		}, ""},
		"a renewal at the home": {func(r *rig) error { return r.renew("us/x") }, ""},
	} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			holding(r.t, r.sites["us"])
			done := make(chan error, 1)
			go func() { done <- tc.call(r) }()
			fake.Pass(100 * time.Millisecond)
			began := time.Now()
			r.takeOver()
			if err := <-done; apierr.ReasonOf(err) != tc.want && (err != nil || tc.want != "") {
				r.t.Errorf("%s: %v, want %q", what, err, tc.want)
			}
			if took := time.Since(began); took != 0 {
				r.t.Errorf("%s ends after %v", what, took)
			}
		})
	}
}

// TestTakeOverBeginsAnew: the health of a site at another address is its own, and the node
// that runs the site is told.
func TestTakeOverBeginsAnew(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		old := r.router.link("us")
		old.update(func(h *health.Health) { h.Refused(time.Now(), time.Hour) })
		r.takeOver()
		fake.Pass(time.Second)
		info, h, ok := r.router.State("us")
		if !ok || h.Reach != health.Up || h.Overloaded(time.Now()) || info.Node != "b" || info.Term != 9 {
			r.t.Errorf("%+v, %+v, %t", info, h, ok)
		}
		if old.enter(1) {
			r.t.Error("the old link takes calls")
		}
	})
}

// TestSameAddressUnderAnotherNode: calls under way go on where the address stays.
func TestSameAddressUnderAnotherNode(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		answer := make(chan struct{})
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-answer
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := r.acquire(r.t, fake.Take)
			done <- err
		}()
		fake.Pass(0)
		before := r.router.link("us")
		r.directory.Set(SiteInfo{Name: "us", Region: "us", Address: "us", Node: "b", Term: 9})
		fake.Pass(time.Second)
		if r.router.link("us") == before {
			r.t.Error("the link is the old one")
		}
		close(answer)
		if err := <-done; err != nil || r.sites["us"].Calls.Load() != 1 {
			r.t.Errorf("the call under way: %v, %d calls arrived", err, r.sites["us"].Calls.Load())
		}
	})
}

// TestWatchAtTheOldAddress: a watch ends as soon as the site listens elsewhere.
func TestWatchAtTheOldAddress(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].OnWatch = func(_ *samyav1.WatchEntityRequest, rpc samyav1.EntityService_WatchEntityServer) error {
			<-rpc.Context().Done()
			return nil
		}
		done := make(chan error, 1)
		go func() {
			done <- r.router.Watch(r.t.Context(), "us", &samyav1.WatchEntityRequest{Name: "acme/vm"}, func(*samyav1.WatchEntityResponse) (bool, error) {
				return false, nil
			})
		}()
		fake.Pass(100 * time.Millisecond)
		began := time.Now()
		r.takeOver()
		if err := <-done; apierr.ReasonOf(err) != apierr.SiteUnavailable || time.Since(began) != 0 {
			r.t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// hanging is a connection that takes nothing more once it hangs.
type hanging struct {
	net.Conn
	hangs, closed chan struct{}
	close         func()
}

func (h *hanging) Write(b []byte) (int, error) {
	select {
	case <-h.hangs:
		<-h.closed
		return 0, net.ErrClosed
	default:
		return h.Conn.Write(b)
	}
}

func (h *hanging) Close() error {
	h.close()
	return h.Conn.Close()
}

// TestHangingConnectionAtTheOldAddress: a call ends at once although its connection takes
// seconds to close, like the connection of a machine that is cut off with full buffers.
func TestHangingConnectionAtTheOldAddress(t *testing.T) {
	for what, call := range map[string]func(*rig) error{
		"an acquire": func(r *rig) error { _, err := r.acquire(r.t, fake.Take); return err },
		"a read": func(r *rig) error {
			return r.router.Do(r.t.Context(), Call{
				Method: samyav1.EntityService_ListEntities_FullMethodName, Read: true,
				Req: &samyav1.ListEntitiesRequest{}, Resp: &samyav1.ListEntitiesResponse{},
			})
		},
	} {
		var hangs chan struct{}
		inBubble(t, []string{"us"}, func(c *Config) {
			hangs = make(chan struct{})
			dial := c.Dial
			c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := dial(ctx, addr)
				if err != nil || addr != "us" {
					return conn, err
				}
				closed := make(chan struct{})
				return &hanging{conn, hangs, closed, sync.OnceFunc(func() { close(closed) })}, nil
			}
		}, func(r *rig) {
			close(hangs)
			done := make(chan error, 1)
			go func() { done <- call(r) }()
			fake.Pass(100 * time.Millisecond)
			began := time.Now()
			r.takeOver()
			if err := <-done; err != nil || time.Since(began) != 0 {
				r.t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
		})
	}
}
