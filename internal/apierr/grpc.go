package apierr

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The keys of the ErrorInfo's metadata.
const (
	metaEntity    = "entity"
	metaLacking   = "lacking"
	metaRequestID = "request_id"
	metaSite      = "site"
	metaLeft      = "tokens_left"
	metaLimit     = "limit"
	metaAttempt   = "attempt"
	metaNotAfter  = "not_after"
	metaTried     = "tried"
	metaElsewhere = "elsewhere"
)

// maxViolations bounds the violations that an Error sends.
const maxViolations = 32

// GRPCStatus returns e as a gRPC status with details, so that returning e from a gRPC
// handler sends all of it except the cause.
func (e *Error) GRPCStatus() *status.Status {
	meta := map[string]string{}
	for k, v := range map[string]string{metaEntity: e.Entity, metaRequestID: e.RequestID, metaSite: e.Site, metaLacking: e.Lacking} {
		if v != "" {
			meta[k] = clip(v)
		}
	}
	for k, v := range map[string]*int64{metaLeft: e.Left, metaLimit: e.Limit} {
		if v != nil {
			meta[k] = strconv.FormatInt(*v, 10)
		}
	}
	if e.Elsewhere {
		meta[metaElsewhere] = "true"
	}
	if e.Attempt > 0 {
		meta[metaAttempt] = strconv.FormatUint(uint64(e.Attempt), 10)
	}
	if !e.NotAfter.IsZero() {
		meta[metaNotAfter] = e.NotAfter.UTC().Format(time.RFC3339Nano)
	}
	if len(e.Tried) > 0 {
		meta[metaTried] = strings.Join(e.Tried, ",")
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(e.Reason), Domain: Domain, Metadata: meta}}
	if len(e.Violations) > 0 {
		br := &errdetails.BadRequest{}
		for _, v := range e.Violations[:min(len(e.Violations), maxViolations)] {
			br.FieldViolations = append(br.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: clip(v.Field), Description: clip(v.Problem)})
		}
		details = append(details, br)
	}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	st := status.New(e.Reason.Code(), clip(e.message()))
	full, err := st.WithDetails(details...)
	if err != nil {
		return st
	}
	return full
}

// FromGRPC turns the error of a gRPC call into an Error. A status made by GRPCStatus
// comes back whole, with err as its cause. A status without a known Reason is mapped by
// its code, and cautiously. A plain Unavailable or DeadlineExceeded proves nothing about
// the request, so it becomes OutcomeUnknown. A caller who knows that the request was not
// sent should say SiteUnavailable instead. FromGRPC returns nil for nil.
func FromGRPC(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e := fromStatus(err); e != nil {
		return e
	}
	return Wrap(Internal, err)
}

// fromStatus reads the gRPC status in err's chain; nil if there is none.
func fromStatus(err error) *Error {
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.OK {
		return nil
	}
	e := &Error{Message: st.Message(), Err: err}
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if r := Reason(d.GetReason()); d.GetDomain() == Domain && r.Known() {
				e.Reason = r
				e.readMeta(d.GetMetadata())
			}
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				e.Violations = append(e.Violations, Violation{Field: v.GetField(), Problem: v.GetDescription()})
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = max(0, d.GetRetryDelay().AsDuration())
		}
	}
	if e.Reason == "" {
		e.Reason = plainReason(st.Code())
	}
	return e
}

func (e *Error) readMeta(m map[string]string) {
	e.Entity, e.RequestID, e.Site, e.Lacking = m[metaEntity], m[metaRequestID], m[metaSite], m[metaLacking]
	e.Elsewhere = m[metaElsewhere] == "true"
	if left, err := strconv.ParseInt(m[metaLeft], 10, 64); err == nil {
		e.Left = &left
	}
	if limit, err := strconv.ParseInt(m[metaLimit], 10, 64); err == nil {
		e.Limit = &limit
	}
	if n, err := strconv.ParseUint(m[metaAttempt], 10, 32); err == nil {
		e.Attempt = uint32(n)
	}
	if t, err := time.Parse(time.RFC3339Nano, m[metaNotAfter]); err == nil {
		e.NotAfter = t
	}
	if s := m[metaTried]; s != "" {
		e.Tried = strings.Split(s, ",")
	}
}

// plainReason maps the code of a status without a Reason: gRPC itself made it, or a proxy
// between two of our processes.
func plainReason(c codes.Code) Reason {
	switch c {
	case codes.InvalidArgument:
		return InvalidField
	case codes.NotFound:
		return EntityNotFound
	case codes.AlreadyExists:
		return EntityExists
	case codes.FailedPrecondition:
		return VersionMismatch
	case codes.OutOfRange:
		return OutOfRange
	case codes.ResourceExhausted:
		// gRPC itself makes ResourceExhausted only for a message beyond the size limit.
		return BodyTooLarge
	case codes.Unimplemented:
		return RouteNotFound
	case codes.Canceled:
		return Canceled
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unknown, codes.Aborted:
		return OutcomeUnknown
	default:
		return Internal
	}
}
