package site_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

type part struct {
	entity string
	tokens int64
}

func allOf(id string, ps ...part) *samyav1.BatchRequest {
	r := &samyav1.BatchRequest{Atomic: true, RequestId: id, Wait: durationpb.New(0)}
	for _, p := range ps {
		r.Operations = append(r.Operations, acquireOf(&samyav1.AcquireRequest{Entity: p.entity, Tokens: p.tokens}))
	}
	return r
}

// TestAtomicBatch: all entities and all their ancestors grant the tokens, or nothing is
// granted. A repeat gets the same answer, and a refusal names the entity that lacked the
// tokens.
func TestAtomicBatch(t *testing.T) {
	f := &forest{sitetest.Start(t, []string{"eu", "us"}, nil), t}
	ctx := t.Context()
	f.plant(map[string]int64{"acme": 60, "acme/a": 1000, "acme/b": 100, "other": 20},
		[2]string{"acme", ""}, [2]string{"acme/a", "acme"}, [2]string{"acme/b", "acme"}, [2]string{"other", ""})
	first := allOf("one", part{"acme/a", 5}, part{"other", 2}, part{"acme/b", 3}, part{"acme/a", 1})
	for range 2 {
		resp, err := f.Tokens("us").Batch(ctx, first)
		if err != nil || resp.GetRequestId() != "one" || resp.GetSite() != "us" || len(resp.GetResults()) != 4 {
			t.Fatalf("%v, %v", resp, err)
		}
		for i, r := range resp.GetResults() {
			if want := first.GetOperations()[i].GetAcquire().GetTokens(); r.GetAcquire().GetTokens() != want {
				t.Errorf("result %d is %v, want %d", i, r, want)
			}
		}
		if got, want := f.acquired("acme", "acme/a", "acme/b", "other"), "acme:9 acme/a:6 acme/b:3 other:2 "; got != want {
			t.Errorf("out of them are %s, want %s", got, want)
		}
	}
	made, err := f.Tokens("us").Batch(ctx, allOf("", part{"other", 1}))
	if err != nil || len(made.GetRequestId()) != 26 {
		t.Errorf("an id made up: %v, %v", made, err)
	}
	other := allOf("one", part{"acme/a", 5}, part{"other", 2}, part{"acme/b", 3})
	most := int64(name.MaxTokens)
	for title, c := range map[string]struct {
		in                     *samyav1.BatchRequest
		reason                 apierr.Reason
		entity, lacking, field string
	}{
		"other operations":       {in: other, reason: apierr.RequestIDReused},
		"a parent lacks":         {in: allOf("two", part{"other", 1}, part{"acme/a", 15}, part{"acme/b", 7}), reason: apierr.OutOfTokens, lacking: "acme"},
		"a parent lacks, again":  {in: allOf("two", part{"other", 1}, part{"acme/a", 15}, part{"acme/b", 7}), reason: apierr.OutOfTokens, lacking: "acme"},
		"one lacks":              {in: allOf("three", part{"acme/a", 1}, part{"other", 19}), reason: apierr.OutOfTokens, lacking: "other"},
		"one exceeds its limit":  {in: allOf("excess", part{"acme/a", 1}, part{"other", 21}), reason: apierr.ExceedsLimit, lacking: "other"},
		"a parent's limit":       {in: allOf("sum", part{"acme/a", 31}, part{"acme/b", 30}), reason: apierr.ExceedsLimit, lacking: "acme"},
		"one is not there":       {in: allOf("four", part{"acme/a", 1}, part{"acme/c", 1}), reason: apierr.EntityNotFound, entity: "acme/c"},
		"another site is wanted": {in: &samyav1.BatchRequest{Atomic: true, Site: "eu", Operations: other.GetOperations()}, reason: apierr.InvalidField, field: "site"},
		"no time":                {in: &samyav1.BatchRequest{Atomic: true, RequestId: "x", Attempt: 2, Operations: other.GetOperations()}, reason: apierr.InvalidField, field: "not_after"},
		"a bad id":               {in: allOf("a b", part{"acme/a", 1}), reason: apierr.InvalidField, field: "request_id"},
		"a bad part":             {in: allOf("x", part{"acme/a", 1}, part{"acme/b", 0}), reason: apierr.InvalidField, field: "operations[1].acquire.tokens"},
		"too many tokens":        {in: allOf("x", part{"acme/a", most}, part{"acme/b", 1}), reason: apierr.InvalidField, field: "operations"},
	} {
		_, err := f.Tokens("us").Batch(ctx, c.in)
		e := apierr.FromGRPC(err)
		if e == nil || e.Reason != c.reason || e.Entity != c.entity || e.Lacking != c.lacking ||
			c.field != "" && (len(e.Violations) != 1 || e.Violations[0].Field != c.field) {
			t.Errorf("%s: %+v", title, e)
		}
	}
	if got, want := f.acquired("acme", "acme/a", "acme/b", "other"), "acme:9 acme/a:6 acme/b:3 other:3 "; got != want {
		t.Errorf("after refusals out of them are %s, want %s", got, want)
	}
}

// TestAtomicBatchWaits: an atomic batch waits for tokens of other sites like an acquire.
func TestAtomicBatchWaits(t *testing.T) {
	f := &forest{sitetest.Start(t, []string{"eu", "us"}, nil), t}
	f.plant(map[string]int64{"a": 100, "b": 10}, [2]string{"a", ""}, [2]string{"b", ""})
	in := allOf("one", part{"a", 80}, part{"b", 7})
	in.Wait = durationpb.New(20 * time.Second)
	if resp, err := f.Tokens("us").Batch(t.Context(), in); err != nil || resp.GetSite() != "us" {
		t.Errorf("%v, %v", resp, err)
	}
	if got, want := f.acquired("a", "b"), "a:80 b:7 "; got != want {
		t.Errorf("out of them are %s, want %s", got, want)
	}
}

// TestAtomicBatchCountsOnce: a further attempt at another site counts alone.
func TestAtomicBatchCountsOnce(t *testing.T) {
	f := &forest{sitetest.Start(t, []string{"eu", "us"}, nil), t}
	f.plant(map[string]int64{"a": 100, "a/b": 100}, [2]string{"a", ""}, [2]string{"a/b", "a"})
	in := allOf("one", part{"a", 5}, part{"a/b", 3})
	in.NotAfter = timestamppb.New(time.Now().Add(time.Minute).Truncate(time.Millisecond))
	if _, err := f.Tokens("us").Batch(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	in.Attempt, in.Tried = 2, []string{"us"}
	resp, err := f.Tokens("eu").Batch(t.Context(), in)
	if err != nil || resp.GetSite() != "eu" {
		t.Fatalf("%v, %v", resp, err)
	}
	sitetest.Eventually(t, "the first attempt is undone", func() error {
		if got := f.acquired("a", "a/b"); got != "a:8 a/b:3 " {
			return errors.New(got)
		}
		return nil
	})
	in.Attempt, in.Tried = 0, nil
	_, err = f.Tokens("us").Batch(t.Context(), in)
	if !errors.Is(apierr.FromGRPC(err), apierr.Superseded) {
		t.Errorf("the first attempt again: %v", err)
	}
}
