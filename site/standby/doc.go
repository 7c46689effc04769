// Package standby runs a node of a site with its log in etcd: the node follows the log, and
// runs the site once the node is active. The package decides nothing about tokens,
// and refuses to run the site on data that does not reach to the end of the log.
//
//	open ──> follow ──> lead ──> run the site ──┐
//	  ^        └─ the log is trimmed: copy ─┐   │ another node is active
//	  └─────────────────────────────────────┴───┘
//
// A node follows while another node is active. When the active node gives no sign of life
// for a while, a standby takes its place. Time says only when to try: the guards of package replica
// keep an old active node from committing. So clocks may be wrong, and
// a node may be paused for any length of time.
package standby
