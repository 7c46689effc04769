// Package fleet looks at the processes of a cluster: it asks app managers which sites
// there are, and all of them for their metrics. It refuses to judge what it sees, and
// changes nothing: it sends no request but reads.
package fleet
