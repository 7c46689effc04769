// Package doctor finds faults of a cluster or of a site's data directory, with severity,
// the number seen, and the remedy. The alerting rules in deploy/monitoring judge clusters,
// and docs/runbooks.md has the remedies, so that doctor, alerts and runbooks cannot
// differ. The package refuses to look at anything: packages fleet and datadir look, and
// hand over observations.
//
// # A few seconds instead of an hour
//
// A rule of Prometheus looks back for minutes or an hour, and waits until a condition has
// held for a while. A doctor has looked for some seconds. So a range is as long as
// was looked, and a condition has to hold at every look. Increases are an exception: a
// counter of a process that was started within the range began at zero then. Whoever
// looks for as long as a rule needs gets the rule in full.
package doctor
