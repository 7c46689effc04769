// Package apierr is the one place where samya's reasons for refusing a request
// are mapped to gRPC codes and HTTP statuses, and it decides nothing: when to
// refuse, and with which reason, is its callers' business.
//
// An [Error] travels unharmed through gRPC (as a status with the details
// ErrorInfo, BadRequest and RetryInfo) and through HTTP (as an RFC 9457 problem
// document). A [Reason] is itself an error, for use with errors.Is:
//
//	if errors.Is(err, apierr.OutOfTokens) { … }
package apierr
