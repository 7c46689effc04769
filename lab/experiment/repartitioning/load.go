package repartitioning

import (
	"fmt"
	"strings"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/ycsb"
)

// op is a request of a load. It is small and without pointers: a million of them
// cost the collector nothing.
type op struct {
	kind  kvpart.RequestKind
	limit uint8
	key   int32 // index into load.names
}

// load is a workload, the same for every cell.
type load struct {
	workload string
	names    []string // keys by number, initial records first
	records  int      // number of initial records
	ops      []op
}

// The lengths of scans on E (paper, section 5).
const (
	scanMin = 2
	scanMax = 8
)

// loadOptions are the options of a workload.
type loadOptions struct {
	workload string // A, D or E
	records  int
	ops      int
	// inserts makes E's writes inserts, as in YCSB and the paper's code, instead of
	// updates, as in the paper's text.
	inserts bool
	// uniform wants all keys alike.
	uniform bool
	seed    uint64
}

// newLoad makes a workload.
func newLoad(o loadOptions) (*load, error) {
	mix, err := ycsb.MixOf(o.workload)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(o.workload, "E") && !o.inserts {
		mix.Update, mix.Insert = mix.Insert, 0
	}
	if o.uniform {
		mix.Distribution = ycsb.Uniform
	}
	w, err := ycsb.New(ycsb.Options{
		Mix: mix, Records: o.records, Clients: 1, ScanMin: scanMin, ScanMax: scanMax, Seed: o.seed,
	})
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", o.workload, err)
	}
	l := &load{workload: o.workload, names: append([]string(nil), w.Names()...), records: o.records, ops: make([]op, o.ops)}
	number := make(map[string]int32, len(l.names))
	for i, name := range l.names {
		number[name] = int32(i)
	}
	client := w.Client(0)
	for i := range l.ops {
		next := client.Next()
		key, known := number[next.Key]
		if !known {
			key = int32(len(l.names))
			l.names = append(l.names, next.Key)
			number[next.Key] = key
		}
		switch next.Kind {
		case ycsb.Read:
			l.ops[i] = op{kind: kvpart.ReadRequest, key: key}
		case ycsb.Write:
			l.ops[i] = op{kind: kvpart.WriteRequest, key: key}
		case ycsb.Scan:
			l.ops[i] = op{kind: kvpart.ScanRequest, key: key, limit: uint8(next.Limit)}
		default:
			return nil, fmt.Errorf("workload %s: a %v cannot be handed over", o.workload, next.Kind)
		}
	}
	return l, nil
}
