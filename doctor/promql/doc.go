// Package promql evaluates the expressions of alerting rules over a few looks at a
// cluster's metrics, in memory. It knows the part of Prometheus' language that samya's
// rules use, and refuses all else when it reads an expression: an expression that means
// something else than Prometheus has it is never evaluated. It fetches nothing.
//
// Two functions go by what was seen. A rate is the increase between the first and the
// last sample of the range over the time between these samples. An increase is the
// difference itself, without a guess at the rest of the range. For series that fill
// their range the rate is that of Prometheus.
package promql
