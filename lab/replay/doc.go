// Package replay plays an hour of demand from several regions to a system in
// virtual time, samya's sites or another, and measures what clients feel and what
// it costs: it judges policies. It refuses to judge safety: package sim looks for
// what breaks under faults. Here a run only fails if more than the limit is out, a
// request has no answer, or the books do not balance in the end.
//
// Load is open: a request is made when it is due, whatever became of those
// before it, and its latency counts from then. The same demand, settings and
// seed give the same result.
package replay
