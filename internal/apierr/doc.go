// Package apierr maps samya's reasons for refusing a request to gRPC codes and HTTP
// statuses. It decides nothing: its callers decide when to refuse, and with which reason.
//
// An [Error] travels unharmed through gRPC (as a status with the details
// ErrorInfo, BadRequest and RetryInfo) and through HTTP (as an RFC 9457 problem
// document). A [Reason] is itself an error, for use with errors.Is:
//
//	if errors.Is(err, apierr.OutOfTokens) { … }
package apierr
