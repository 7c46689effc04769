package kvlab

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/samya-db/samya/lab/ycsb"
)

// Mix is a workload of the paper on early scheduling (its Section 5.5): requests of one
// shard, and requests of all shards at once.
type Mix struct {
	// Writes is the share of requests that write, Global the share that uses all shards,
	// Skew the share of the others that goes to the first shard beyond its part.
	Writes, Global, Skew float64
}

// mixKey is the key of a record. Shards take the records in turns, as placement by
// round robin does.
func mixKey(i int) string { return fmt.Sprintf("k%08d", i) }

// mixKeys are the keys of a write of all shards.
func mixKeys(op ycsb.Op) ([]string, error) {
	first, err := strconv.Atoi(strings.TrimPrefix(op.Key, "k"))
	if err != nil {
		return nil, fmt.Errorf("write %d records from %q on: %w", op.Limit, op.Key, err)
	}
	keys := make([]string, op.Limit)
	for i := range keys {
		keys[i] = mixKey(first + i)
	}
	return keys, nil
}

// Names returns the keys of the records, in the order in which to load them.
func (m Mix) Names(records int) []string {
	names := make([]string, records)
	for i := range names {
		names[i] = mixKey(i)
	}
	return names
}

// Make makes n operations for each client. A read of all shards is a scan of a record of
// each, a write of all shards a transaction. records is at least shards.
func (m Mix) Make(shards, records, clients, n int, seed uint64) [][]ycsb.Op {
	all := make([][]ycsb.Op, clients)
	for c := range all {
		rnd := rand.New(rand.NewPCG(seed, uint64(c)))
		all[c] = make([]ycsb.Op, n)
		for i := range all[c] {
			write, first := rnd.Float64() < m.Writes, rnd.IntN(records/shards)*shards
			switch {
			case rnd.Float64() >= m.Global:
				shard := rnd.IntN(shards)
				if rnd.Float64() < m.Skew {
					shard = 0
				}
				op := ycsb.Op{Kind: ycsb.Read, Key: mixKey(first + shard)}
				if write {
					op.Kind = ycsb.Write
				}
				all[c][i] = op
			case write:
				all[c][i] = ycsb.Op{Kind: ycsb.Modify, Key: mixKey(first), Limit: shards}
			default:
				all[c][i] = ycsb.Op{Kind: ycsb.Scan, Key: mixKey(first), Limit: shards}
			}
		}
	}
	return all
}
