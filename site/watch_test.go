package site_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/sitetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestWatchTellsTenStatesASecond: however often an entity changes, a watch gets at most
// ten states a second, the last state among them.
func TestWatchTellsTenStatesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		// It changes each millisecond for a second, and never again.
		now := func() input.Revision {
			return input.Revision(1 + min(1000, time.Since(began).Milliseconds()))
		}
		next := func(ctx context.Context, after input.Revision) (answer.Answer, error) {
			for now() <= after {
				if after > 1000 {
					<-ctx.Done()
					return answer.Answer{}, ctx.Err()
				}
				<-time.After(time.Millisecond) // of the bubble's clock
			}
			return answer.Answer{Revision: now()}, nil
		}
		var told []input.Revision
		done := make(chan error)
		go func() {
			done <- site.Follow(ctx, 0, next, func(a *answer.Answer) error {
				told = append(told, a.Revision)
				return nil
			})
		}()
		<-time.After(5 * time.Second)
		synctest.Wait()
		if len(told) != 11 || told[0] != 1 || told[10] != 1001 || !slices.IsSorted(told) {
			t.Errorf("told %v", told)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestWatchEndsWhileItPauses: a caller that goes ends a pause at once.
func TestWatchEndsWhileItPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		next := func(context.Context, input.Revision) (answer.Answer, error) { return answer.Answer{Revision: 1}, nil }
		began := time.Now()
		err := site.Follow(ctx, 0, next, func(*answer.Answer) error { cancel(); return nil })
		if !errors.Is(err, apierr.Canceled) || time.Since(began) != 0 {
			t.Errorf("ended after %v with %v", time.Since(began), err)
		}
	})
}

type watching struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[samyav1.WatchEntityResponse]
}

func watchAt(t *testing.T, c *sitetest.Cluster, at, entity, token string) watching {
	t.Helper()
	stream, err := c.Entities(at).WatchEntity(t.Context(), &samyav1.WatchEntityRequest{Name: entity, ResumeToken: token})
	if err != nil {
		t.Fatal(err)
	}
	return watching{t, stream}
}

func (w watching) next() *samyav1.WatchEntityResponse {
	w.t.Helper()
	resp, err := w.stream.Recv()
	if err != nil {
		w.t.Fatalf("the next state: %v", err)
	}
	return resp
}

func (w watching) ends(want apierr.Reason) {
	w.t.Helper()
	for {
		resp, err := w.stream.Recv()
		switch {
		case err == nil:
			w.t.Logf("told %v", resp)
		case want == "" && errors.Is(err, io.EOF), want != "" && errors.Is(apierr.FromGRPC(err), want):
			return
		default:
			w.t.Errorf("ends with %v, want %q", err, want)
			return
		}
	}
}

func TestWatch(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 10)
	acquire := func(n int64) {
		t.Helper()
		if _, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: n}); err != nil {
			t.Fatal(err)
		}
	}
	w := watchAt(t, c, "us", "acme/vm", "")
	first := w.next()
	if u := first.GetUsage(); u.GetAvailable() != 10 || first.GetEntity().GetLimit() != 10 || first.GetDeleted() {
		t.Errorf("the present state: %v", first)
	}
	acquire(3)
	second := w.next()
	if u := second.GetUsage(); u.GetAvailable() != 7 || u.GetAcquired() != 3 || u.GetShares()[0].GetMoves() != nil {
		t.Errorf("after an acquire: %v", second)
	}
	if _, err := c.Entities("us").UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "acme/vm", Limit: 2}); err != nil {
		t.Fatal(err)
	}
	for third := w.next(); third.GetEntity().GetVersion() != 2 || third.GetUsage().GetDebt() != 1; third = w.next() {
		t.Logf("told %v", third)
	}
	// Resumed after the second state, the watch begins with a later state. Without a
	// token, or with a token of another run, it begins with the present state.
	late := watchAt(t, c, "us", "acme/vm", second.GetResumeToken()).next()
	if late.GetEntity().GetVersion() != 2 {
		t.Errorf("resumed: %v", late)
	}
	again := watchAt(t, c, "us", "acme/vm", late.GetResumeToken())
	acquireAndRelease(t, c)
	if got := again.next(); got.GetResumeToken() == late.GetResumeToken() {
		t.Errorf("the state told last is told again: %v", got)
	}
	_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
	for _, want := range []string{"samya_site_watchers ", "samya_site_watch_states_total "} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("no %q among the metrics", want)
		}
	}
	// The test needs a connection of its own: the cluster closes its clients' first.
	conn, err := grpc.NewClient("passthrough:///"+c.Site("us").GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := samyav1.NewEntityServiceClient(conn).WatchEntity(t.Context(), &samyav1.WatchEntityRequest{Name: "acme/vm"})
	if err != nil {
		t.Fatal(err)
	}
	stopped := watching{t, stream}
	stopped.next()
	c.Stop("us")
	stopped.ends(apierr.ShuttingDown)
	c.Boot("us")
	c.AwaitLinks()
	restarted := watchAt(t, c, "us", "acme/vm", late.GetResumeToken())
	present := restarted.next()
	if present.GetEntity().GetVersion() != 2 {
		t.Errorf("resumed at another run: %v", present)
	}
	if _, err := c.Entities("us").DeleteEntity(t.Context(), &samyav1.DeleteEntityRequest{Name: "acme/vm"}); err != nil {
		t.Fatal(err)
	}
	last := restarted.next()
	if !last.GetDeleted() || last.GetEntity().GetGeneration() != present.GetEntity().GetGeneration() || last.GetUsage() != nil {
		t.Errorf("after the deletion: %v", last)
	}
	restarted.ends("")
	// A watcher that missed the deletion is told so, if this site can know.
	if got := watchAt(t, c, "us", "acme/vm", present.GetResumeToken()).next(); !got.GetDeleted() {
		t.Errorf("resumed after the deletion: %v", got)
	}
	watchAt(t, c, "us", "acme/vm", late.GetResumeToken()).ends(apierr.EntityNotFound)
	watchAt(t, c, "us", "acme/vm", "").ends(apierr.EntityNotFound)
	watchAt(t, c, "us", "acme/vm", "nonsense").ends(apierr.InvalidField)
	watchAt(t, c, "us", "", "").ends(apierr.InvalidField)
}

// acquireAndRelease changes the books of acme/vm: a release is always taken.
func acquireAndRelease(t *testing.T, c *sitetest.Cluster) {
	t.Helper()
	if _, err := c.Tokens("us").Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
		t.Fatal(err)
	}
}

// TestReads: a site tells of itself, and of others.
func TestReads(t *testing.T) {
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Create("vm", 100)
	if _, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "vm", Tokens: 20}); err != nil {
		t.Fatal(err)
	}
	read := func(at string, how samyav1.Consistency) (*samyav1.Usage, error) {
		resp, err := c.Entities(at).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "vm", Consistency: how})
		return resp.GetUsage(), err
	}
	local, err := read("us", samyav1.Consistency_CONSISTENCY_LOCAL)
	if err != nil || len(local.GetShares()) != 1 || local.GetAvailable() != 30 || local.GetAcquired() != 20 || local.GetComplete() {
		t.Errorf("local: %v, %v", local, err)
	}
	sitetest.Eventually(t, "word of us at eu", func() error {
		u, err := read("eu", samyav1.Consistency_CONSISTENCY_BOUNDED)
		if err != nil {
			return err
		}
		sh := u.GetShares()
		if len(sh) != 2 || sh[0].GetSite() != "eu" || sh[0].GetAge().AsDuration() != 0 || sh[1].GetSite() != "us" || u.GetConsistent() {
			t.Fatalf("bounded: %v", u)
		}
		if !sh[1].GetKnown() {
			return fmt.Errorf("unknown: %v", u)
		}
		if sh[1].GetNet() != 20 || sh[1].GetLeft() != 30 || sh[1].GetAge().AsDuration() > 10*time.Second || u.GetAcquired() != 20 {
			t.Errorf("bounded: %v", u)
		}
		return nil
	})
	if _, err := read("us", samyav1.Consistency_CONSISTENCY_EXACT); !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
		t.Errorf("exact at a site: %v", err)
	}
	if _, err := read("us", 77); !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
		t.Errorf("of an unknown kind: %v", err)
	}
}

func FuzzWatchToken(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("dXMuMS4yLjM")
	f.Add("")
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, text string) {
		if again, err := site.ParseWatchToken(text); err == nil && again != text {
			t.Errorf("%q is read as %q", text, again)
		}
	})
}
