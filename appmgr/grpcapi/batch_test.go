package grpcapi

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestBatch(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		began := time.Now()
		wait := durationpb.New(3 * time.Second)
		resp, err := r.service.Batch(t.Context(), &samyav1.BatchRequest{Operations: []*samyav1.Operation{
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, RequestId: "s1", Wait: wait}),
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "a", Tokens: 2, RequestId: "r2"}),
			fake.ReleaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 3, RequestId: "r3"}),
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "none", Tokens: 1, RequestId: "r4"}),
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "a/", Tokens: 1}),
			fake.ReleaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 0}),
			{},
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, RequestId: "s2", Wait: wait}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range resp.GetResults() {
			got = append(got, fake.OfResult(r))
		}
		want := []string{
			"OUT_OF_TOKENS", "acquired 2 as r2", "released 3 as r3", "ENTITY_NOT_FOUND",
			"INVALID_FIELD of operations[4].acquire.entity", "INVALID_FIELD of operations[5].release.tokens",
			"INVALID_FIELD of operations[6].operation", "OUT_OF_TOKENS",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("two operations that wait for 3s took %v", took)
		}
		for n, problem := range map[int]string{0: "0, at least 1", 1001: "1001, at most 1000"} {
			_, err := r.service.Batch(t.Context(), &samyav1.BatchRequest{Operations: make([]*samyav1.Operation, n)})
			if e := apierr.From(err); e == nil || len(e.Violations) != 1 || e.Violations[0] != (apierr.Violation{Field: "operations", Problem: problem}) {
				t.Errorf("%d operations: %v", n, err)
			}
		}
	})
}

// TestBatchOverload: each operation counts as a request under way. Each operation beyond
// the bound is refused by itself.
func TestBatchOverload(t *testing.T) {
	inBubble(t, fake.ThreeSites, func(c *config) { c.MaxConcurrent = 3 }, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		in := &samyav1.BatchRequest{}
		for range 5 {
			in.Operations = append(in.Operations, fake.AcquireOf(&samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Second)}))
		}
		resp, err := r.service.Batch(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, r := range resp.GetResults() {
			count[fake.OfResult(r)]++
		}
		if count["OUT_OF_TOKENS"] != 3 || count["OVERLOADED"] != 2 {
			t.Error(count)
		}
		if n := r.limiter.UnderWay(); n != 0 {
			t.Errorf("%d slots lost", n)
		}
	})
}
