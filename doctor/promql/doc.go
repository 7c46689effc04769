// Package promql evaluates the expressions of alerting rules over a few looks at a
// cluster's metrics, in memory. The package knows the part of Prometheus' language that
// samya's rules use. Parse refuses all else, so that no expression gives another answer
// than Prometheus. The package refuses to fetch metrics.
//
// Two functions go by the samples alone. A rate is the increase between the first and the
// last sample of the range over the time between both. An increase is the plain
// difference, without a guess at the rest of the range. If samples fill the range, the
// rate equals that of Prometheus.
package promql
