// Package monitoring holds the monitoring of a cluster with Prometheus and Grafana:
// recording rules, alerting rules and a dashboard. Its tests check them against the
// metrics that processes expose. It refuses to hold code: it tells the rules to `samya
// doctor`, which judges by them, and no more.
package monitoring

import _ "embed" // for the rules

// Alerts and Recording are the files of rules.
var (
	//go:embed alerts.yml
	Alerts []byte
	//go:embed recording.yml
	Recording []byte
)
