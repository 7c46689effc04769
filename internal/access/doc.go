// Package access decides which calls a caller may make. It knows callers by bearer token,
// JWT or client certificate. It checks every method against the table of package methods,
// and every entity named in a request against the entities of its caller. It does not know the
// meaning of the calls, and refuses every method without a rule.
//
// Interceptors ask it before every call of gRPC, and the HTTP API before every request:
// both by the full names of gRPC's methods. Without an access file everybody may do
// everything; unless forced, processes allow this only on loopback.
package access
