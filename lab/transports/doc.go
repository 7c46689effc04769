// Package transports compares ways to carry the stream of operations
// (TokenService.Stream) from a Go client to a server on a single machine. The client is
// internal/mux in this process. The server is a process of its own, and answers each
// message of calls at once with one message. So the figures show the cost of the ways
// alone: no site decides, and nothing is stored.
//
// Rounds measure all ways in turn. Figures are medians over the rounds, ratios medians of
// the ratios within a round.
package transports
