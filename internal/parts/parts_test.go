package parts_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
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
		// field is the field at fault; empty for none.
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
		"as many as there are": {atomic(parts.Of("acme/vm", name.MaxTokens-1), parts.Of("acme/disk", 1)), ""},
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

// TestEveryFieldIsHeldAgainst: a batch that is not atomic says nothing as a whole, and a
// part of an atomic batch says its entity and its tokens. The test goes over all fields
// of the messages, also over fields to come.
func TestEveryFieldIsHeldAgainst(t *testing.T) {
	whole := func() proto.Message {
		return &samyav1.BatchRequest{Operations: []*samyav1.Operation{parts.Of("acme", 1)}}
	}
	part := func() proto.Message { return &samyav1.AcquireRequest{Entity: "acme", Tokens: 1} }
	for _, test := range []struct {
		message func() proto.Message
		free    []string
		prefix  string
	}{
		{whole, []string{"operations", "atomic"}, ""},
		// The number of a try is for app managers; they set it in each part.
		{part, []string{"entity", "tokens", "relay"}, "operations[0].acquire."},
	} {
		fields := test.message().ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if slices.Contains(test.free, string(field.Name())) {
				continue
			}
			m := test.message()
			give(t, m.ProtoReflect(), field)
			batch, ok := m.(*samyav1.BatchRequest)
			if !ok {
				batch = atomic(&samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: m.(*samyav1.AcquireRequest)}})
			}
			want := test.prefix + string(field.Name()) + ": "
			if err := parts.Check(batch); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("a batch with %s is taken: %v", want, err)
			}
		}
	}
}

// give gives a field a value that is not the default.
func give(t *testing.T, m protoreflect.Message, field protoreflect.FieldDescriptor) {
	t.Helper()
	switch {
	case field.IsList() && field.Kind() == protoreflect.StringKind:
		m.Mutable(field).List().Append(protoreflect.ValueOfString("us"))
	case field.Kind() == protoreflect.MessageKind:
		m.Mutable(field)
	case field.Kind() == protoreflect.StringKind:
		m.Set(field, protoreflect.ValueOfString("us"))
	case field.Kind() == protoreflect.BoolKind:
		m.Set(field, protoreflect.ValueOfBool(true))
	case field.Kind() == protoreflect.Int64Kind:
		m.Set(field, protoreflect.ValueOfInt64(1))
	case field.Kind() == protoreflect.Uint64Kind:
		m.Set(field, protoreflect.ValueOfUint64(1))
	case field.Kind() == protoreflect.Uint32Kind:
		m.Set(field, protoreflect.ValueOfUint32(1))
	default:
		t.Fatalf("%s is of kind %v: give it a value here", field.FullName(), field.Kind())
	}
}

// TestHugeBatches: the error about a batch with too many operations does not grow with
// the batch.
func TestHugeBatches(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		err := parts.Check(&samyav1.BatchRequest{Atomic: atomic, Operations: make([]*samyav1.Operation, 100_000)})
		if err == nil || len(err.Error()) > 100 {
			t.Errorf("atomic %t: %.200v", atomic, err)
		}
	}
}

// TestOfIsNoneByItself: a server that knows no atomic batches refuses a part: it has the
// number of a try and no id.
func TestOfIsNoneByItself(t *testing.T) {
	a := parts.Of("acme", 7).GetAcquire()
	if a.GetEntity() != "acme" || a.GetTokens() != 7 || a.GetRelay() == 0 || a.GetRequestId() != "" {
		t.Errorf("%v", a)
	}
}
