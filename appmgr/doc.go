// Package appmgr is the stateless front of a cluster: it serves the public API
// over HTTP/JSON and gRPC, relays each request to the nearest healthy site, and
// adds up the sites' books for global reads. It refuses to guess: a request
// that moves tokens or changes an entity goes to a second site only if the
// first provably never got it or said that it did nothing, and where neither an
// answer nor that proof exists the caller is told that the outcome is unknown,
// with the request id to repeat and the site to repeat it at.
//
// What it remembers (round trips, the member list, figures last seen) it may
// forget at any time; any number of app managers can serve side by side.
package appmgr
