// Package cutcheck measures the partitioner of kvpart/cut against gpmetis, on
// graphs drawn from seeds: the cut, the balance of the parts, the time, and the
// vertices that a warm start moves. It counts cuts and weights itself, and refuses
// to judge without gpmetis.
package cutcheck
