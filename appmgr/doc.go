// Package appmgr is the stateless front of a cluster. It serves the public API over
// HTTP/JSON and gRPC, and relays each request to the nearest healthy site. For global
// reads it adds up the sites' books.
//
// An app manager never guesses. A request that moves tokens or changes an entity goes to
// a second site only if the first provably did nothing. Either the first site never got
// the request, or it said so. Without an answer and without proof, the caller is told
// that the outcome is unknown. The error has the request id to repeat and the site to
// repeat it at.
//
// An app manager may forget its memory (round trips, the member list, figures last seen)
// at any time. Any number of app managers can serve side by side.
//
// This package has the settings, the listeners and the wiring. The work is done below it,
// in rooms that stand on each other: route and limiter, reads, grpcapi, ratelimit, httpapi.
package appmgr
