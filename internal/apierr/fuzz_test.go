package apierr_test

import (
	"encoding/json"
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/testfuzz"
)

// FuzzFromGRPC: every status of a site, or of something before it, becomes an error with
// a known reason. The document of the error is a problem document.
func FuzzFromGRPC(tf *testing.F) {
	f := testfuzz.On(tf)
	left := int64(-3)
	for _, st := range []*status.Status{
		status.New(codes.Unavailable, "gone"), status.New(99, "odd"),
		(&apierr.Error{Reason: apierr.OutOfTokens, Entity: "e", Left: &left, RetryAfter: 5}).GRPCStatus(),
		apierr.Invalid("f", "bad").GRPCStatus(),
	} {
		raw, err := proto.Marshal(st.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p spb.Status
		if proto.Unmarshal(raw, &p) != nil {
			return
		}
		e := apierr.FromGRPC(status.ErrorProto(&p))
		if e == nil {
			if codes.Code(p.GetCode()) != codes.OK { //nolint:gosec // as grpc does it
				t.Fatalf("%v is no error", &p)
			}
			return
		}
		document(t, e)
	})
}

// FuzzDocument: whatever problem document an app manager or something before it
// returns, it becomes an error with a known reason.
func FuzzDocument(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte(`{"reason":"OUT_OF_TOKENS","detail":"d","tokens_left":-3,"violations":[{"field":"f"}]}`))
	f.Add([]byte(`{"reason":"nothing","status":99999}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p apierr.Problem
		if json.Unmarshal(raw, &p) == nil {
			document(t, p.Error())
		}
	})
}

// document checks that an error can be told as a document and as a status.
func document(t *testing.T, e *apierr.Error) {
	t.Helper()
	if !e.Reason.Known() || e.Error() == "" || e.RetryAfter < 0 {
		t.Fatalf("%+v", e)
	}
	b, err := json.Marshal(e.Problem("/v1/x"))
	if err != nil || !json.Valid(b) {
		t.Fatalf("%v: %s", err, b)
	}
	if again := apierr.FromGRPC(e.GRPCStatus().Err()); again.Reason != e.Reason {
		t.Fatalf("%v became %v", e, again)
	}
}
