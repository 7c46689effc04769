// Package access decides who may call what: it knows callers by bearer token, JWT or
// client certificate, holds every method against one table of rules, and every
// entity that a request names against what its caller may touch. It refuses to know
// what the calls do, and to let a method pass that has no rule.
//
// Interceptors ask it before every call of gRPC, and the HTTP API before every
// request: both by the full names of gRPC's methods. Without an access file everybody
// may do everything, which processes allow on loopback alone unless they are forced.
package access
