// Package conformance holds the clients of samya to the same promises: it plays the table of
// clients/conformance against a cluster of real processes, for each client by a driver
// program of the client's own language. It knows nothing of how a client keeps a promise.
package conformance
