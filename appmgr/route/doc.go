// Package route relays calls from an app manager to sites. It follows a directory of
// sites, probes them, and sends each call to the nearest healthy site.
//
// The package never guesses. A call that moves tokens or changes an entity goes to a second
// site only if the first provably did nothing, or if the second can learn of the first try.
// Otherwise the error tells that the outcome is unknown, and what to repeat where. The
// package does not check requests, and adds no answers of sites up.
package route
