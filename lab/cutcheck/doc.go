// Package cutcheck holds the partitioner of kvpart/cut against gpmetis, on graphs
// drawn from seeds: what is cut, how even the parts are, how long it takes, and
// what a warm start moves. It counts cuts and weights itself, and refuses to
// judge where gpmetis is missing.
package cutcheck
