package peer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sending serves the link in a bubble, and notes each batch and its time.
type sending struct {
	began    time.Time
	messages []uint64
	at       []time.Duration
	batches  int
}

// serving begins to serve a link; stop ends it, which takes no time.
func serving(t *testing.T, k *link) (s *sending, stop func()) {
	t.Helper()
	s = &sending{began: time.Now()}
	ctx, cancel := context.WithCancelCause(t.Context())
	stream := called{send: func(f *peerv1.LinkRequest) error {
		s.batches++
		for _, n := range instances(f.GetBatch().GetMessages()) {
			s.messages, s.at = append(s.messages, n), append(s.at, time.Since(s.began))
		}
		return nil
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.serve(ctx, cancel, stream)
	}()
	return s, func() {
		before := time.Now()
		cancel(nil)
		<-done
		if took := time.Since(before); took != 0 {
			t.Errorf("the end takes %v", took)
		}
	}
}

// TestLatencyHoldsBack: messages to a member are held back by the present latency, and
// are lost if the link ends first.
func TestLatencyHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency := 100 * ms
		_, k := inside(func(c *Config) {
			c.Latency = func(to core.SiteID) time.Duration {
				if to != "eu" {
					t.Errorf("the latency to %q is asked for", to)
				}
				return latency
			}
		})
		s, stop := serving(t, k)
		k.push(numbered(0))
		pass(t, 30*ms)
		k.push(numbered(1))
		synctest.Wait()
		latency = 200 * ms
		k.push(numbered(2))
		pass(t, time.Second)
		k.push(numbered(3))
		pass(t, 199*ms)
		stop()
		pass(t, time.Second)
		if want := []time.Duration{100 * ms, 130 * ms, 230 * ms}; !slices.Equal(s.messages, []uint64{0, 1, 2}) || !slices.Equal(s.at, want) {
			t.Errorf("messages %v arrive at %v, want the first three at %v", s.messages, s.at, want)
		}
	})
}

// TestFaultLosesBatchesAlone: messages queued behind lost batches go on by themselves.
func TestFaultLosesBatchesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		_, k := inside(func(c *Config) {
			c.MaxBatch = 2
			c.Fault = func(core.SiteID) bool {
				lost++
				return lost <= 2
			}
		})
		for i := range uint64(7) {
			k.push(numbered(i))
		}
		s, stop := serving(t, k)
		defer stop()
		synctest.Wait()
		if !slices.Equal(s.messages, []uint64{4, 5, 6}) || s.batches != 2 {
			t.Errorf("messages %v arrive in %d batches", s.messages, s.batches)
		}
	})
}

// TestSendingFails: a link ends with a stream that takes nothing any more, and says why.
func TestSendingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := inside(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		failed := errors.New("no stream")
		k.push(numbered(1))
		k.serve(ctx, cancel, called{send: func(*peerv1.LinkRequest) error { return failed }})
		if cause := context.Cause(ctx); !errors.Is(cause, failed) {
			t.Errorf("it ends with %v", cause)
		}
	})
}

// TestEndOfTheLinksEndsTheStreamsOfOthers: a site that ends its links tells all linked
// sites at once. Nothing of a stream is left once it is over.
func TestEndOfTheLinksEndsTheStreamsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eu, _ := inside(asEU)
		us, _ := inside(nil)
		ctx, cancel := context.WithCancel(t.Context())
		run, end := context.WithCancel(t.Context())
		go us.Run(run)
		ended := make(chan error, 1)
		go func() { ended <- us.Link(calledBy(ctx, helloOf(eu))) }()
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("the stream ended with %v", <-ended)
		}
		end()
		select {
		case err := <-ended:
			if status.Code(err) != codes.Unavailable {
				t.Errorf("it ends with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		// Messages that wait for the next frame end with the stream.
		cancel()
	})
}

// TestWhoIsRefusedIsNotHeard: only a member that is let in shows that it is there.
func TestWhoIsRefusedIsNotHeard(t *testing.T) {
	other, _ := inside(func(c *Config) { c.Self, c.Cluster = "eu", "test" })
	eu, _ := inside(asEU)
	for name, tc := range map[string]struct {
		first *peerv1.LinkRequest
		says  string
	}{
		"of another cluster": {helloOf(other), `"test"`},
		"no greeting":        {batchOf(numbered(1)), "did not introduce itself"},
		"a member":           {helloOf(eu), ""},
	} {
		us, k := inside(func(c *Config) {
			c.Receive = func(core.SiteID, []message.Envelope) { t.Errorf("%s: something is received", name) }
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := us.Link(calledBy(ctx, tc.first))
		heard := len(k.heard) == 1
		if tc.says == "" {
			if !heard {
				t.Errorf("%s is not heard, %v", name, err)
			}
			continue
		}
		if heard || status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: heard: %v, ended with %v", name, heard, err)
		}
	}
}

// TestFramesWithoutAMessage: frames without a known message tell nobody.
func TestFramesWithoutAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received []int
		us, _ := inside(func(c *Config) {
			c.Receive = func(_ core.SiteID, messages []message.Envelope) { received = append(received, len(messages)) }
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = us.take(calledBy(ctx, &peerv1.LinkRequest{}, batchOf(), batchOf(&peerv1.ProtocolMessage{Kind: 99}), batchOf(numbered(1), numbered(2))), "eu")
		}()
		synctest.Wait()
		if !slices.Equal(received, []int{2}) {
			t.Errorf("batches of %v messages are received", received)
		}
		cancel()
		<-done
	})
}

// TestConnectedIsACopy: a list of connected members does not change once told.
func TestConnectedIsACopy(t *testing.T) {
	var told [][]core.SiteID
	l, _ := inside(func(c *Config) { c.Connected = func(s []core.SiteID) { told = append(told, s) } })
	for _, s := range []core.SiteID{"us", "as", "eu"} {
		l.setConnected(s, true)
	}
	asked := l.Connected()
	l.setConnected("as", false)
	l.setConnected("sa", true)
	if want := []core.SiteID{"as", "eu", "us"}; !slices.Equal(asked, want) || !slices.Equal(told[2], want) {
		t.Errorf("asked for: %v, told: %v, want %v", asked, told[2], want)
	}
	if want := []core.SiteID{"eu", "sa", "us"}; len(told) != 5 || !slices.Equal(told[4], want) {
		t.Errorf("told %v, want %v at last", told, want)
	}
}

// TestGreetingOfALaterMemberSet: a site tells the version of its member set, so that
// sites with different versions are linked while a change goes through.
func TestGreetingOfALaterMemberSet(t *testing.T) {
	us, _ := inside(nil)
	later, _ := inside(func(c *Config) {
		c.Self, c.Members, c.MembersVersion = "eu", []core.SiteID{"as", "eu", "us"}, 2
	})
	if err := us.greet(later.hello()); err != nil {
		t.Errorf("the one with the later set is refused: %v", err)
	}
	if err := later.greet(us.hello()); err != nil {
		t.Errorf("the one with the earlier set is refused: %v", err)
	}
	if v := later.hello().GetMembersVersion(); v != 2 {
		t.Errorf("version %d", v)
	}
}
