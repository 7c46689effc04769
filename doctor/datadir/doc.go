// Package datadir looks at the data directory of a site that does not run: whose data it
// is, whether a start would take it, and if not, why. It starts on the data as a site
// does, on a view that keeps all writes in memory. It refuses to change a directory, and
// to look at the directory of a site that runs.
package datadir
