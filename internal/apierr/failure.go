package apierr

import (
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Failure returns e in the form of a result of a batch or a stream. Code, message and
// details are from the status that a separate call would have failed with.
func (e *Error) Failure() *samyav1.Failure {
	st := e.GRPCStatus().Proto()
	return &samyav1.Failure{Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails()}
}

// FromFailure turns a failed result into the Error that a separate call would have
// returned. A result of Failure comes back whole, with a gRPC status error as its cause.
// A failure with code OK becomes Internal.
func FromFailure(f *samyav1.Failure) *Error {
	if codes.Code(f.GetCode()) == codes.OK {
		return New(Internal, "a failure without a code")
	}
	return FromGRPC(status.FromProto(&spb.Status{
		Code: f.GetCode(), Message: f.GetMessage(), Details: f.GetDetails(),
	}).Err())
}

// Within puts prefix before the names of the fields at fault, as parts of the field that
// holds them. It returns e itself if e names no field.
func (e *Error) Within(prefix string) *Error {
	if len(e.Violations) == 0 {
		return e
	}
	inner := *e
	inner.Violations = make([]Violation, len(e.Violations))
	for i, v := range e.Violations {
		inner.Violations[i] = Violation{Field: prefix + v.Field, Problem: v.Problem}
	}
	if e.Reason == InvalidField {
		inner.Message = InvalidFields(inner.Violations...).Message
	}
	return &inner
}
