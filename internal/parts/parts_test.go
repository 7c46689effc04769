package parts_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func atomic(ops ...*samyav1.Operation) *samyav1.BatchRequest {
	return &samyav1.BatchRequest{Atomic: true, RequestId: "id-1", Operations: ops}
}

func TestCheck(t *testing.T) {
	acquire := func(a *samyav1.AcquireRequest) *samyav1.Operation {
		return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: a}}
	}
	release := &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1}}}
	most := parts.Of("acme/vm", name.MaxTokens)
	for what, tc := range map[string]struct {
		batch *samyav1.BatchRequest
		// field is the one at fault; empty for none.
		field string
	}{
		"atomic":               {atomic(parts.Of("acme/vm", 1), parts.Of("acme/vm", 2)), ""},
		"one by one":           {&samyav1.BatchRequest{Operations: []*samyav1.Operation{release}}, ""},
		"none":                 {atomic(), "operations"},
		"too many":             {atomic(make([]*samyav1.Operation, 1001)...), "operations"},
		"a release":            {atomic(release), "operations[0].release.operation"},
		"no operation":         {atomic(&samyav1.Operation{}), "operations[0].operation"},
		"an id of its own":     {atomic(acquire(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "x"})), "operations[0].acquire.request_id"},
		"no tokens":            {atomic(parts.Of("acme/vm", 1), parts.Of("acme/vm", 0)), "operations[1].acquire.tokens"},
		"a bad name":           {atomic(parts.Of("//", 1)), "operations[0].acquire.entity"},
		"too many tokens":      {atomic(most, parts.Of("acme/disk", 1)), "operations"},
		"wait of one by one":   {&samyav1.BatchRequest{Operations: []*samyav1.Operation{release}, Wait: durationpb.New(1)}, "wait"},
		"id of one by one":     {&samyav1.BatchRequest{Operations: []*samyav1.Operation{release}, RequestId: "x"}, "request_id"},
		"attempt, one by one":  {&samyav1.BatchRequest{Operations: []*samyav1.Operation{release}, Attempt: 1}, "attempt"},
		"a lease within":       {atomic(acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 1, Lease: &samyav1.LeaseTerms{}})), "operations[0].acquire.lease"},
		"content with less":    {atomic(acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 2, MinTokens: 1})), "operations[0].acquire.min_tokens"},
		"a dry run within all": {atomic(acquire(&samyav1.AcquireRequest{Entity: "a", Tokens: 2, DryRun: true})), "operations[0].acquire.dry_run"},
	} {
		err := parts.Check(tc.batch)
		if (err == nil) != (tc.field == "") || err != nil && !strings.HasPrefix(err.Error(), tc.field+": ") {
			t.Errorf("%s: %v, want it of %q", what, err, tc.field)
		}
	}
}

func TestForeign(t *testing.T) {
	in := atomic(parts.Of("acme/vm", 3), parts.Of("acme/disk", 4))
	result := func(tokens int64) *samyav1.Result {
		return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{Tokens: tokens}}}
	}
	for what, tc := range map[string]struct {
		out     *samyav1.BatchResponse
		foreign bool
	}{
		"its own":      {&samyav1.BatchResponse{Site: "us", Results: []*samyav1.Result{result(3), result(4)}}, false},
		"of no site":   {&samyav1.BatchResponse{Results: []*samyav1.Result{result(3), result(4)}}, true},
		"too short":    {&samyav1.BatchResponse{Site: "us", Results: []*samyav1.Result{result(3)}}, true},
		"other tokens": {&samyav1.BatchResponse{Site: "us", Results: []*samyav1.Result{result(3), result(5)}}, true},
		"a refusal":    {&samyav1.BatchResponse{Site: "us", Results: []*samyav1.Result{result(3), {}}}, true},
	} {
		if parts.Foreign(in, tc.out) != tc.foreign {
			t.Errorf("%s: foreign is %v, want %v", what, !tc.foreign, tc.foreign)
		}
	}
}
