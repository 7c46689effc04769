package kvlab_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/kvlab"
	"github.com/samya-db/samya/lab/ycsb"
)

// TestTable measures all rows briefly. RunTable fails if a store loses values.
func TestTable(t *testing.T) {
	o := &kvlab.BenchOptions{
		Rounds: 2, Clients: 2, Records: 60, Operations: 400, Time: time.Minute, ValueSize: 16, Partitions: 3, Every: time.Millisecond, Seed: 1,
		Open: func(o kvpart.Options) (kvlab.Store, error) { return kvpart.Open(o) }, Progress: func(string) {},
	}
	table, err := kvlab.RunTable(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, s := range kvpart.Schedulers() {
		if !slices.ContainsFunc(table.Rows, func(r kvlab.TableRow) bool { return r.Store == "threaded, "+string(s)+", async" }) || !strings.Contains(text.String(), string(s)) {
			t.Errorf("no row of %s", s)
		}
	}
	for i, r := range table.Rows {
		if len(r.Cells) != len(table.Workloads) {
			t.Errorf("%d cells", len(r.Cells))
		}
		for _, c := range r.Cells {
			if c.Rate <= 0 || c.Low > c.Ratio || c.Ratio > c.High || i == 0 && c.Ratio != 1 {
				t.Errorf("%s: %+v", r.Store, c)
			}
		}
	}
}

// TestMix: shares come out as asked for, and requests of all shards use a record of each.
func TestMix(t *testing.T) {
	m := kvlab.Mix{Writes: .3, Global: .2, Skew: .5}
	names := m.Names(40)
	writes, global, first, n := 0, 0, 0, 0
	for _, ops := range m.Make(4, 40, 3, 4000, 7) {
		for _, op := range ops {
			n++
			at := slices.Index(names, op.Key)
			if at < 0 {
				t.Fatalf("key %q", op.Key)
			}
			if op.Kind == ycsb.Write || op.Kind == ycsb.Modify {
				writes++
			}
			switch {
			case op.Limit > 0:
				if global++; op.Limit != 4 || at%4 != 0 {
					t.Fatalf("%+v", op)
				}
			case at%4 == 0:
				first++
			}
		}
	}
	share := func(what string, got, want float64) {
		if got < want-.03 || got > want+.03 {
			t.Errorf("%s: %.3f, want %.3f", what, got, want)
		}
	}
	share("writes", float64(writes)/float64(n), .3)
	share("global", float64(global)/float64(n), .2)
	share("first shard", float64(first)/float64(n-global), .5+.5/4)
}
