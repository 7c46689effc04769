// Package doctor judges what is wrong with a cluster or with a site's data directory: how
// bad it is, what was seen, and what to do. It judges clusters by the alerting rules in
// deploy/monitoring, and takes what to do from docs/runbooks.md, so that doctor, alerts
// and runbooks cannot differ. It refuses to look for itself: packages fleet and datadir
// look, and hand over what they saw.
//
// # A few seconds instead of an hour
//
// A rule of Prometheus looks back for minutes or an hour, and waits until its condition
// has held for a while. A doctor has looked for some seconds. So a range is as long as
// was looked, and a condition has to hold at every look. Increases are an exception: a
// counter of a process that was started within the range began at zero then. Whoever
// looks for as long as a rule needs gets the rule in full.
package doctor
