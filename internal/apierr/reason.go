package apierr

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Domain is the domain of the gRPC ErrorInfo that carries a Reason.
const Domain = "samya"

// typePrefix makes a problem document's type out of a reason. It is a tag URI (RFC 4151):
// RFC 9457 section 3.1.1 allows a type that does not resolve.
const typePrefix = "tag:samya-db.github.io,2026:"

// Reason is the machine-readable reason why a request was not done. Clients may rely on
// the spelling; the list only grows. A Reason is an error: errors.Is(err,
// apierr.OutOfTokens) reports whether err has that reason.
type Reason string

// The reasons. If [Reason.NothingDone] is true of a reason, it is given only if the
// request provably changed nothing.
const (
	// OutOfTokens: the tokens could not be found within the wait. The Error says how many
	// are left and when to try again.
	OutOfTokens Reason = "OUT_OF_TOKENS"
	// ExceedsLimit: more tokens are asked for than the limit of the entity, or of an
	// entity above it, as the site knows it. No site can ever grant them. The Error says
	// the limit. Repeats are refused as well.
	ExceedsLimit Reason = "EXCEEDS_LIMIT"
	// QueueFull: too many acquires wait for tokens of the entity already.
	QueueFull Reason = "QUEUE_FULL"
	// Superseded: a later attempt of the same request id was made; the refused attempt
	// has done nothing and never will.
	Superseded Reason = "SUPERSEDED"
	// RequestExpired: the request came after its not_after.
	RequestExpired Reason = "REQUEST_EXPIRED"
	// LeaseNotFound: there is no such lease, or it has ended.
	LeaseNotFound Reason = "LEASE_NOT_FOUND"
	// EntityNotFound: there is no entity of that name.
	EntityNotFound Reason = "ENTITY_NOT_FOUND"
	// ParentNotFound: there is no entity of the parent's name.
	ParentNotFound Reason = "PARENT_NOT_FOUND"
	// HasChildren: other entities stand below the entity to delete.
	HasChildren Reason = "HAS_CHILDREN"
	// EntityExists: there is an entity of that name already.
	EntityExists Reason = "ENTITY_EXISTS"
	// RequestIDReused: the request id was used before with another body.
	RequestIDReused Reason = "REQUEST_ID_REUSED"
	// InvalidField: a field has a forbidden value. The Error names every such field and
	// its rule.
	InvalidField Reason = "INVALID_FIELD"
	// OutOfRange: a count valid by itself would take a sum beyond its range.
	OutOfRange Reason = "OUT_OF_RANGE"
	// MalformedJSON: the body is not a single JSON object.
	MalformedJSON Reason = "MALFORMED_JSON"
	// BodyTooLarge: the body or message is longer than the server takes.
	BodyTooLarge Reason = "BODY_TOO_LARGE"
	// UnsupportedMediaType: the body is declared to be something other than
	// JSON.
	UnsupportedMediaType Reason = "UNSUPPORTED_MEDIA_TYPE"
	// MethodNotAllowed: the resource exists and has no such method.
	MethodNotAllowed Reason = "METHOD_NOT_ALLOWED"
	// RouteNotFound: no resource or call has that address.
	RouteNotFound Reason = "ROUTE_NOT_FOUND"
	// VersionMismatch: the entity, the mode or the cluster does not have the expected version. Its
	// HTTP status is 409, not 412, which RFC 9110 keeps for conditions in headers.
	VersionMismatch Reason = "VERSION_MISMATCH"
	// MemberNotFound: the cluster has no site of that name.
	MemberNotFound Reason = "MEMBER_NOT_FOUND"
	// MemberState: the change does not fit the state of the site, or would leave no member.
	MemberState Reason = "MEMBER_STATE"
	// ClusterVersionTooLow: the sites' builds know the change, and the version of the
	// cluster does not. The version has to be raised first.
	ClusterVersionTooLow Reason = "CLUSTER_VERSION_TOO_LOW"
	// Unauthenticated: the caller has shown no credentials, or none that are good.
	Unauthenticated Reason = "UNAUTHENTICATED"
	// PermissionDenied: the caller is known and may not do this.
	PermissionDenied Reason = "PERMISSION_DENIED"
	// RateLimited: the caller makes more requests a second than it may.
	RateLimited Reason = "RATE_LIMITED"
	// AuditFailed: the process cannot write to its audit log, and makes no change without
	// a line in the log.
	AuditFailed Reason = "AUDIT_FAILED"
	// Overloaded: the process has more work than it can do in time and refused
	// the request before beginning it.
	Overloaded Reason = "OVERLOADED"
	// SiteUnavailable: no site that may answer could be reached; the request
	// was not sent.
	SiteUnavailable Reason = "SITE_UNAVAILABLE"
	// SiteDraining: the site leaves the cluster and takes no new requests but those about
	// its leases. Another site can be asked at once.
	SiteDraining Reason = "SITE_DRAINING"
	// LeaseMoved: a site that leaves has handed the lease over. The Error's site is the
	// heir, which has the lease, if it is known. App managers and the client of Go ask the
	// heir: only callers that ask sites by other means get this reason.
	LeaseMoved Reason = "LEASE_MOVED"
	// MembersChanging: another change of the members is under way; members change one at
	// a time.
	MembersChanging Reason = "MEMBERS_CHANGING"
	// NoQuorum: no majority of the sites can be reached, and nothing was
	// proposed to any.
	NoQuorum Reason = "NO_QUORUM"
	// ShuttingDown: the process is stopping and refused the request before
	// beginning it.
	ShuttingDown Reason = "SHUTTING_DOWN"
	// DeadlineExceeded: the deadline passed before the request was begun.
	DeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// OutcomeUnknown: the request may or may not have been done. The Error
	// names the request id and the site; a repeat of that id at that site finds
	// out without moving tokens twice.
	OutcomeUnknown Reason = "OUTCOME_UNKNOWN"
	// WindowExceeded: a stream had more calls without an answer than its window allows;
	// the calls under way may or may not have been done.
	WindowExceeded Reason = "WINDOW_EXCEEDED"
	// Canceled: the caller gave up before there was an answer; the request may
	// or may not have been done.
	Canceled Reason = "CANCELED"
	// Internal: samya failed in a way that has no other reason.
	Internal Reason = "INTERNAL"
)

// statusClientClosedRequest is the customary status of a request if its caller went away.
// It has no name in net/http, and only logs and metrics see it.
const statusClientClosedRequest = 499

// row is the code, status and title of a reason.
type row struct {
	code        codes.Code
	http        int
	title       string
	nothingDone bool
}

var table = map[Reason]row{
	OutOfTokens:          {codes.ResourceExhausted, http.StatusTooManyRequests, "Not enough tokens left", true},
	ExceedsLimit:         {codes.FailedPrecondition, http.StatusBadRequest, "More than the limit", true},
	QueueFull:            {codes.Unavailable, http.StatusServiceUnavailable, "Too many requests wait", true},
	Superseded:           {codes.Aborted, http.StatusConflict, "A later attempt was made", true},
	RequestExpired:       {codes.FailedPrecondition, http.StatusConflict, "The request came too late", true},
	LeaseNotFound:        {codes.NotFound, http.StatusNotFound, "No such lease", true},
	EntityNotFound:       {codes.NotFound, http.StatusNotFound, "No such entity", true},
	ParentNotFound:       {codes.NotFound, http.StatusNotFound, "No such parent", true},
	HasChildren:          {codes.FailedPrecondition, http.StatusConflict, "Entities stand below it", true},
	EntityExists:         {codes.AlreadyExists, http.StatusConflict, "The entity exists already", true},
	RequestIDReused:      {codes.AlreadyExists, http.StatusConflict, "The request id was used for another request", true},
	InvalidField:         {codes.InvalidArgument, http.StatusBadRequest, "Invalid field", true},
	OutOfRange:           {codes.OutOfRange, http.StatusBadRequest, "Count out of range", true},
	MalformedJSON:        {codes.InvalidArgument, http.StatusBadRequest, "Malformed JSON", true},
	BodyTooLarge:         {codes.ResourceExhausted, http.StatusRequestEntityTooLarge, "Body too large", true},
	UnsupportedMediaType: {codes.InvalidArgument, http.StatusUnsupportedMediaType, "Unsupported media type", true},
	MethodNotAllowed:     {codes.Unimplemented, http.StatusMethodNotAllowed, "Method not allowed", true},
	RouteNotFound:        {codes.Unimplemented, http.StatusNotFound, "No such resource", true},
	VersionMismatch:      {codes.FailedPrecondition, http.StatusConflict, "Not the version expected", true},
	MemberNotFound:       {codes.NotFound, http.StatusNotFound, "No such site", true},
	MemberState:          {codes.FailedPrecondition, http.StatusConflict, "The site's state does not allow it", true},
	ClusterVersionTooLow: {codes.FailedPrecondition, http.StatusConflict, "The cluster's version is too low", true},
	Unauthenticated:      {codes.Unauthenticated, http.StatusUnauthorized, "Not known who asks", true},
	PermissionDenied:     {codes.PermissionDenied, http.StatusForbidden, "Not allowed to this caller", true},
	RateLimited:          {codes.ResourceExhausted, http.StatusTooManyRequests, "Too many requests of one caller", true},
	AuditFailed:          {codes.FailedPrecondition, http.StatusInternalServerError, "The audit log cannot be written", true},
	Overloaded:           {codes.Unavailable, http.StatusServiceUnavailable, "Overloaded", true},
	SiteUnavailable:      {codes.Unavailable, http.StatusServiceUnavailable, "No site can be reached", true},
	SiteDraining:         {codes.Unavailable, http.StatusServiceUnavailable, "The site leaves the cluster", true},
	LeaseMoved:           {codes.Unavailable, http.StatusServiceUnavailable, "Another site has the lease", true},
	MembersChanging:      {codes.FailedPrecondition, http.StatusConflict, "The members are changing", true},
	NoQuorum:             {codes.Unavailable, http.StatusServiceUnavailable, "No majority of sites can be reached", true},
	ShuttingDown:         {codes.Unavailable, http.StatusServiceUnavailable, "Shutting down", true},
	DeadlineExceeded:     {codes.DeadlineExceeded, http.StatusGatewayTimeout, "Deadline exceeded", true},
	OutcomeUnknown:       {codes.Unknown, http.StatusGatewayTimeout, "Outcome unknown", false},
	WindowExceeded:       {codes.ResourceExhausted, http.StatusTooManyRequests, "Too many calls without an answer", false},
	Canceled:             {codes.Canceled, statusClientClosedRequest, "Canceled by the caller", false},
	Internal:             {codes.Internal, http.StatusInternalServerError, "Internal error", false},
}

// row returns the row of r; a reason without a row gets the row of Internal.
func (r Reason) row() row {
	if w, ok := table[r]; ok {
		return w
	}
	return table[Internal]
}

// Reasons returns all reasons, in the order of their names.
func Reasons() []Reason { return slices.Sorted(maps.Keys(table)) }

// Known reports whether r is a reason of this package.
func (r Reason) Known() bool {
	_, ok := table[r]
	return ok
}

// Error returns the reason's name, so that a Reason can be used as an error.
func (r Reason) Error() string { return string(r) }

// GRPCStatus lets a bare Reason be returned from a gRPC handler.
func (r Reason) GRPCStatus() *status.Status { return (&Error{Reason: r}).GRPCStatus() }

// Code returns the gRPC code of r.
func (r Reason) Code() codes.Code { return r.row().code }

// HTTPStatus returns the HTTP status of r.
func (r Reason) HTTPStatus() int { return r.row().http }

// Title returns a short sentence without a full stop, the same for every
// occurrence of r.
func (r Reason) Title() string { return r.row().title }

// Type returns the URI that names r in problem documents.
func (r Reason) Type() string {
	return typePrefix + strings.ReplaceAll(strings.ToLower(string(r)), "_", "-")
}

// NothingDone reports whether r proves that the request changed nothing.
func (r Reason) NothingDone() bool { return r.row().nothingDone }

// Settles reports whether r, told of an attempt of a request to acquire or release, holds
// for all of its attempts. Then the site has the refusal on record, with its questions to
// the other sites, or no attempt can succeed any more.
func (r Reason) Settles() bool {
	switch r {
	case OutOfTokens, ExceedsLimit, Superseded, LeaseNotFound:
		return true
	}
	return false
}

// SettlesChange reports whether r, told of a try of a change that names its id, holds for
// all of its tries. Had an earlier try been done, its result would be told.
func (r Reason) SettlesChange() bool {
	switch r {
	case EntityExists, VersionMismatch, HasChildren, ParentNotFound, RequestIDReused, LeaseNotFound, MemberState:
		return true
	}
	return false
}
