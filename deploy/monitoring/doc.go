// Package monitoring holds what watches a cluster with Prometheus and Grafana: rules
// that record and that alert, and a dashboard; its tests hold them against what
// processes expose. It refuses to hold code: nothing imports it.
package monitoring
