package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// way makes an operation at site us and returns the error with which a call of it would
// fail.
type way func(c caller, op *samyav1.Operation) error

// inBatch is the way of a batch: the operation stands between others, and the batch's
// path leads the names of fields at fault.
func inBatch(c caller, op *samyav1.Operation) error {
	resp, err := c.Tokens("us").Batch(c.ctx, &samyav1.BatchRequest{Operations: []*samyav1.Operation{{}, op, {}}})
	if err != nil {
		return err
	}
	if n := len(resp.GetResults()); n != 3 {
		return fmt.Errorf("%d results", n)
	}
	for i := range 2 {
		e := apierr.FromFailure(resp.GetResults()[2*i].GetFailure())
		if len(e.Violations) != 1 || e.Violations[0].Field != fmt.Sprintf("operations[%d].operation", 2*i) {
			return fmt.Errorf("an operation of no kind: %w", e)
		}
	}
	f := resp.GetResults()[1].GetFailure()
	if f == nil {
		return nil
	}
	kind := "operations[1].acquire."
	if op.GetRelease() != nil {
		kind = "operations[1].release."
	}
	e := apierr.FromFailure(f)
	if int32(e.Reason.Code()) != f.GetCode() {
		return fmt.Errorf("code %d of %w", f.GetCode(), e)
	}
	for i, v := range e.Violations {
		field, ok := strings.CutPrefix(v.Field, kind)
		if !ok || !strings.Contains(e.Message, v.Field) {
			return fmt.Errorf("the field at fault is called %q in %q", v.Field, e.Message)
		}
		e.Violations[i].Field = field
	}
	return e
}

func acquireOf(r *samyav1.AcquireRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: r}}
}

func releaseOf(r *samyav1.ReleaseRequest) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: r}}
}

// ofResult is a result in short.
func ofResult(r *samyav1.Result) string {
	switch r := r.GetResult().(type) {
	case *samyav1.Result_Acquire:
		return fmt.Sprintf("acquired %d as %s, %d left", r.Acquire.GetTokens(), r.Acquire.GetRequestId(), r.Acquire.GetLeft())
	case *samyav1.Result_Release:
		return fmt.Sprintf("released %d as %s, %d left", r.Release.GetTokens(), r.Release.GetRequestId(), r.Release.GetLeft())
	case *samyav1.Result_Failure:
		return string(apierr.FromFailure(r.Failure).Reason)
	}
	return "nothing"
}

// TestBatch: operations are done in their order, each by itself; a repeat within
// the batch gets the first's answer.
func TestBatch(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 10)
	at := durationpb.New(0)
	resp, err := c.Tokens("us").Batch(t.Context(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 4, RequestId: "a"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 7, RequestId: "b", Wait: at}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 4, RequestId: "a"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 5, RequestId: "a"}),
		releaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "r"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/none", Tokens: 1, RequestId: "n"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 0, RequestId: "z"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 9, MinTokens: 2, RequestId: "m", Wait: at}),
		releaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: "r"}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "d", DryRun: true, Wait: at}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(resp.GetResults()))
	for _, r := range resp.GetResults() {
		got = append(got, ofResult(r))
	}
	want := []string{
		"acquired 4 as a, 6 left", "OUT_OF_TOKENS", "acquired 4 as a, 6 left", "REQUEST_ID_REUSED", "released 1 as r, 7 left",
		"ENTITY_NOT_FOUND", "INVALID_FIELD", "acquired 7 as m, 0 left", "released 1 as r, 7 left", "OUT_OF_TOKENS",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 10 || u.GetAvailable() != 0 {
		t.Errorf("books: %v", u)
	}
}

// TestBatchKeepsNothingOfBefore: operations are reused for later operations of other
// kinds, whatever became of them.
func TestBatchKeepsNothingOfBefore(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 1000)
	left, made := 1000, 0
	acquire := func(n int) (*samyav1.Operation, string) {
		left, made = left-n, made+1
		return acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: int64(n), RequestId: fmt.Sprint("a", made)}),
			fmt.Sprintf("acquired %d as a%d, %d left", n, made, left)
	}
	release := func() (*samyav1.Operation, string) {
		left, made = left+1, made+1
		return releaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: fmt.Sprint("r", made)}),
			fmt.Sprintf("released 1 as r%d, %d left", made, left)
	}
	for round := range 20 {
		operations, want := make([]*samyav1.Operation, 3), make([]string, 3)
		if round%2 == 0 {
			operations[0], want[0] = acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm"}), "INVALID_FIELD"
			operations[1], want[1] = release()
			operations[2], want[2] = acquire(2)
		} else {
			operations[0], want[0] = acquire(4)
			operations[1], want[1] = acquire(3)
			operations[2], want[2] = release()
		}
		resp, err := c.Tokens("us").Batch(t.Context(), &samyav1.BatchRequest{Operations: operations})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range resp.GetResults() {
			if got := ofResult(r); got != want[i] {
				t.Errorf("round %d: operation %d: %s, want %s", round, i, got, want[i])
			}
		}
	}
}

// TestBatchMakesIDs: each operation without an id gets an id, which names its lease.
func TestBatchMakesIDs(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 10)
	lease := &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute), Holder: "me"}
	resp, err := c.Tokens("us").Batch(t.Context(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, Lease: lease}),
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 2, Lease: lease}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := resp.GetResults()[0].GetAcquire(), resp.GetResults()[1].GetAcquire()
	if a.GetRequestId() == "" || a.GetRequestId() == b.GetRequestId() {
		t.Errorf("ids %q and %q", a.GetRequestId(), b.GetRequestId())
	}
	for i, r := range []*samyav1.AcquireResponse{a, b} {
		l := r.GetLease()
		if l.GetName() != "us/"+r.GetRequestId() || l.GetTokens() != int64(i+1) || l.GetHolder() != "me" || l.GetEntity() != "acme/vm" {
			t.Errorf("lease %v of %v", l, r)
		}
	}
}

// TestBatchBounds: a batch of none or too many fails as a whole.
func TestBatchBounds(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 5000)
	of := func(n int) *samyav1.BatchRequest {
		r := &samyav1.BatchRequest{}
		for range n {
			r.Operations = append(r.Operations, acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}))
		}
		return r
	}
	for n, problem := range map[int]string{0: "0, at least 1", 1001: "1001, at most 1000"} {
		_, err := c.Tokens("us").Batch(t.Context(), of(n))
		e := apierr.FromGRPC(err)
		if status.Code(err) != codes.InvalidArgument || len(e.Violations) != 1 ||
			e.Violations[0] != (apierr.Violation{Field: "operations", Problem: problem}) {
			t.Errorf("%d operations: %v", n, err)
		}
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 0 {
		t.Errorf("books after batches refused: %v", u)
	}
	resp, err := c.Tokens("us").Batch(t.Context(), of(1000))
	if err != nil || len(resp.GetResults()) != 1000 {
		t.Fatal(len(resp.GetResults()), err)
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 1000 {
		t.Errorf("books: %v", u)
	}
}

// TestBatchGivenUp: when the caller of a batch goes, its waiting acquires stop waiting.
// Operations done by then stay done.
func TestBatchGivenUp(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("acme/vm", 9)
	// Nobody can tell that there are no more tokens.
	c.Partition([]string{"us"}, []string{"as", "eu"})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Tokens("us").Batch(ctx, &samyav1.BatchRequest{Operations: []*samyav1.Operation{
			acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "a"}),
			acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "b", Wait: durationpb.New(time.Minute)}),
		}})
		failed <- err
	}()
	waiting := func(want int64) func() error {
		return func() error {
			resp, err := c.Entities("us").GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "acme/vm"})
			if err != nil {
				return err
			}
			for _, s := range resp.GetUsage().GetShares() {
				if s.GetSite() == "us" && s.GetWaiting() == want && s.GetLeft() == 0 {
					return nil
				}
			}
			return errors.New(resp.String())
		}
	}
	sitetest.Eventually(t, "an acquire that waits", waiting(1))
	cancel()
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	sitetest.Eventually(t, "nobody waits", waiting(0))
}
