// Package standby runs a node of a site whose log is in etcd: it follows the log, and runs
// the site once the node is the active one. It decides nothing about tokens, and refuses to
// run the site on data that does not reach to the end of the log.
//
//	open ──> follow ──> lead ──> run the site ──┐
//	  ^        └─ the log is trimmed: copy ─┐   │ another node is active
//	  └─────────────────────────────────────┴───┘
//
// A node follows while another one is active. When the active node gives no sign of life
// for a while, a standby takes its place. Time says only when to try: what keeps an old
// active node from committing are the guards of package replica. So clocks may be wrong, and
// a node may be paused for as long as it likes.
package standby
