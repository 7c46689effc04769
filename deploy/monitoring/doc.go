// Package monitoring holds the monitoring of a cluster with Prometheus and Grafana:
// recording rules, alerting rules and a dashboard. Its tests check them against the
// metrics that processes expose. It refuses to hold code: nothing imports it.
package monitoring
