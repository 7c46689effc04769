// Package replay plays an hour of demand from several regions to a system in
// virtual time, samya's sites or another. It measures the clients' view and the
// cost: it judges policies. It does not judge safety: package sim looks for errors
// under faults. Here a run fails only if more than the limit is out, a request has
// no answer, or the final books do not balance.
//
// Load is open: a request is made when it is due, whatever the outcome of the
// requests before. Its latency counts from then. The same demand, settings and seed
// give the same result.
package replay
