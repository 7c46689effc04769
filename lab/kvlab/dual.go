package kvlab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
)

// DualOptions configures RunDual.
type DualOptions struct {
	Rounds  int
	Clients int
	Keys    int            // of each half
	Value   int            // bytes of a value of the half that writes
	Time    time.Duration  // of a measurement
	Settle  time.Duration  // most time for a balance to be found
	Backend string         // name of Engine
	Engine  engine.Factory // durable, with engines that have disks of their own
	Dir     string         // an existing folder; each store has two folders below it
	Seed    uint64
	// Progress is told of each step.
	Progress func(string)
}

// Dual is the throughput of a store of two partitions, each with an engine on a disk,
// whose requests are of two kinds: half of them take processor time, half write.
type Dual struct {
	Backend string    `json:"backend"`
	Clients int       `json:"clients"`
	Value   int       `json:"value_bytes"`
	Compute float64   `json:"compute_us"` // time of a request that computes, alone
	Write   float64   `json:"write_us"`   // time of a request that writes, alone
	Rows    []DualRow `json:"rows"`
}

// DualRow is a way to place keys. Figures are medians of all rounds.
type DualRow struct {
	Name  string  `json:"name"`
	Rate  float64 `json:"operations_per_second"`
	Ratio float64 `json:"of_control"` // the rate by the rate of the first row in the same round
	Low   float64 `json:"least"`
	High  float64 `json:"greatest"`
	Moved float64 `json:"keys_moved"`
	// CPU and Disk are the larger load of both partitions over their mean.
	CPU  float64 `json:"cpu_most_over_mean"`
	Disk float64 `json:"disk_most_over_mean"`
	// MovingP99 and P99 are latencies in ms, while keys moved and afterwards.
	MovingP99 float64 `json:"p99_ms_while_moving"`
	P99       float64 `json:"p99_ms"`
	ratios    []float64
	rounds    []dualRun
}

// dualRun is a round of a row.
type dualRun struct {
	rate, moved, cpu, disk, movingP99, p99 float64
}

const dualPartitions = 2

// dualRows are the ways to place keys. The first row is the control: all keys that compute
// on one partition, all keys that write on the other.
func dualRows() []struct {
	name    string
	balance kvpart.Balance // "" keeps the first placement
	mixed   bool           // half of each kind on each partition from the start
} {
	return []struct {
		name    string
		balance kvpart.Balance
		mixed   bool
	}{
		{"wrong partitions, kept", "", false},
		{"graph", kvpart.BalanceGraph, false},
		{"processor alone", kvpart.BalanceCPU, false},
		{"disk alone", kvpart.BalanceDisk, false},
		{"libra", kvpart.BalanceLibra, false},
		{"both", kvpart.BalanceBoth, false},
		{"half of each, by hand", "", true},
	}
}

// RunDual measures all rows, every second round backwards.
func RunDual(ctx context.Context, o *DualOptions) (*Dual, error) {
	d := &dual{DualOptions: o}
	if err := d.calibrate(ctx); err != nil {
		return nil, fmt.Errorf("measure single requests: %w", err)
	}
	rows := dualRows()
	t := &Dual{
		Backend: o.Backend, Clients: o.Clients, Value: o.Value, Rows: make([]DualRow, len(rows)),
		Compute: float64(d.compute) / 1e3, Write: float64(d.write) / 1e3,
	}
	for round := range o.Rounds {
		for i := range rows {
			if round%2 == 1 {
				i = len(rows) - 1 - i
			}
			o.Progress(fmt.Sprintf("round %d of %d: %s", round+1, o.Rounds, rows[i].name))
			r, err := d.run(ctx, rows[i].balance, rows[i].mixed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rows[i].name, err)
			}
			t.Rows[i].Name = rows[i].name
			t.Rows[i].rounds = append(t.Rows[i].rounds, *r)
		}
	}
	for i := range t.Rows {
		t.Rows[i].sum(t.Rows[0].rounds)
	}
	return t, nil
}

// sum computes the figures of a row.
func (r *DualRow) sum(control []dualRun) {
	of := func(f func(*dualRun) float64) float64 {
		var all []float64
		for i := range r.rounds {
			all = append(all, f(&r.rounds[i]))
		}
		return median(all)
	}
	r.Rate, r.Moved = of(func(d *dualRun) float64 { return d.rate }), of(func(d *dualRun) float64 { return d.moved })
	r.CPU, r.Disk = of(func(d *dualRun) float64 { return d.cpu }), of(func(d *dualRun) float64 { return d.disk })
	r.P99, r.MovingP99 = of(func(d *dualRun) float64 { return d.p99 }), of(func(d *dualRun) float64 { return d.movingP99 })
	for i := range r.rounds {
		ratio := r.rounds[i].rate / control[i].rate
		r.ratios = append(r.ratios, ratio)
		if i == 0 {
			r.Low, r.High = ratio, ratio
		}
		r.Low, r.High = min(r.Low, ratio), max(r.High, ratio)
	}
	r.Ratio = median(r.ratios)
}

// dual measures.
type dual struct {
	*DualOptions
	loops          int // of a request that computes
	compute, write time.Duration
	stores         int
}

// computeName and writeName are the keys of both halves.
func computeName(i int) string { return fmt.Sprintf("c%06d", i) }
func writeName(i int) string   { return fmt.Sprintf("w%06d", i) }

// open opens a store with its keys where a row begins.
func (d *dual) open(ctx context.Context, balance kvpart.Balance, mixed bool) (*kvpart.Store, string, error) {
	d.stores++
	dir := filepath.Join(d.Dir, fmt.Sprintf("store%d", d.stores))
	o := kvpart.Options{
		Strategy: kvpart.HardThreaded, Partitions: dualPartitions, Backend: d.Backend, Engine: &d.Engine, Seed: d.Seed,
		Dirs: []string{filepath.Join(dir, "disk0"), filepath.Join(dir, "disk1")},
	}
	s, err := kvpart.Open(o)
	if err != nil {
		return nil, dir, fmt.Errorf("open a store: %w", err)
	}
	var work errgroup.Group
	work.SetLimit(16)
	for i := range d.Keys {
		for _, name := range []string{computeName(i), writeName(i)} {
			work.Go(func() error { return s.Load(ctx, name, []byte(name)) })
		}
	}
	err = work.Wait()
	if err == nil {
		err = s.Reassign(func(key string) int {
			if mixed {
				return int(key[len(key)-1]) % dualPartitions
			}
			if key[0] == 'c' {
				return 0
			}
			return 1
		})
	}
	for i := 0; err == nil && i < d.Keys; i++ { // values go where their keys are
		err = errors.Join(s.Load(ctx, computeName(i), make([]byte, 64)), s.Load(ctx, writeName(i), []byte{1}))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, dir, fmt.Errorf("load a store: %w", err)
	}
	if balance != "" {
		o.Policy = kvpart.Policy{Kind: kvpart.Async, Balance: balance, Every: time.Second}
	}
	if s, err = kvpart.Open(o); err != nil {
		return nil, dir, fmt.Errorf("open a store again: %w", err)
	}
	return s, dir, nil
}

// hash takes processor time.
func hash(seed []byte, loops int) [sha256.Size]byte {
	sum := sha256.Sum256(seed)
	for range loops {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

// calibrate makes a request that computes take half of the time of a request that
// writes.
func (d *dual) calibrate(ctx context.Context) (err error) {
	s, dir, err := d.open(ctx, "", true)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const tries = 40
	var writes, hashes []float64
	value := make([]byte, d.Value)
	for i := range tries {
		began := time.Now()
		if err := s.Write(ctx, writeName(i%d.Keys), value); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		writes = append(writes, float64(time.Since(began)))
		began = time.Now()
		hash(value[:8], 1000)
		hashes = append(hashes, float64(time.Since(began))/1000)
	}
	d.write = time.Duration(median(writes))
	d.loops = max(1, int(median(writes)/2/median(hashes)))
	d.compute = time.Duration(float64(d.loops) * median(hashes))
	return nil
}

// run measures a row once.
func (d *dual) run(ctx context.Context, balance kvpart.Balance, mixed bool) (r *dualRun, err error) {
	s, dir, err := d.open(ctx, balance, mixed)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, moving, err := d.load(ctx, s, d.settled(s))
	if err != nil {
		return nil, err
	}
	before := s.Stats()
	began := time.Now()
	n, steady, err := d.load(ctx, s, func(over time.Duration) bool { return over >= d.Time })
	if err != nil {
		return nil, err
	}
	after := s.Stats()
	r = &dualRun{
		rate: float64(n) / time.Since(began).Seconds(), moved: float64(after.Moved),
		movingP99: ms(moving.ValueAtQuantile(99)), p99: ms(steady.ValueAtQuantile(99)), cpu: 1, disk: 1,
	}
	if after.CPU != nil {
		r.cpu = mostOverMean(growth(after.CPU, before.CPU))
	}
	r.disk = mostOverMean(growth(after.Written, before.Written))
	return r, nil
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// mostOverMean returns the largest load over the mean, 1 without load.
func mostOverMean[T int64 | time.Duration](loads []T) float64 {
	sum, most := 0., 0.
	for _, l := range loads {
		sum += float64(l)
		most = max(most, float64(l))
	}
	if sum == 0 {
		return 1
	}
	return most * float64(len(loads)) / sum
}

// settled returns when a store has found its balance: no new map for a while.
func (d *dual) settled(s *kvpart.Store) func(over time.Duration) bool {
	const calm = 8 * time.Second
	applied, since := int64(0), time.Duration(0)
	return func(over time.Duration) bool {
		if n := s.Stats().Applied; n != applied {
			applied, since = n, over
		}
		return over >= d.Settle || over-since >= calm
	}
}

// load runs the clients until done says so, and returns the number of requests and their
// latencies.
func (d *dual) load(ctx context.Context, s *kvpart.Store, done func(over time.Duration) bool) (int64, *hdrhistogram.Histogram, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := make([]*hdrhistogram.Histogram, d.Clients)
	var clients errgroup.Group
	for c := range d.Clients {
		all[c] = hdrhistogram.New(1, longest, 3)
		clients.Go(func() error {
			rnd := rand.New(rand.NewPCG(d.Seed, uint64(c)))
			value := make([]byte, d.Value)
			for ctx.Err() == nil {
				began := time.Now()
				if err := d.request(s, rnd, value); err != nil {
					return err
				}
				_ = all[c].RecordValue(time.Since(began).Nanoseconds()) // within its range
			}
			return nil
		})
	}
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if done(time.Since(began)) || ctx.Err() != nil {
			break
		}
	}
	err := context.Cause(ctx)
	stop()
	if failed := clients.Wait(); failed != nil || err != nil {
		return 0, nil, errors.Join(failed, err)
	}
	for _, h := range all[1:] {
		all[0].Merge(h)
	}
	return all[0].TotalCount(), all[0], nil
}

// request does a request of either kind.
func (d *dual) request(s *kvpart.Store, rnd *rand.Rand, value []byte) error {
	i := rnd.IntN(d.Keys)
	if rnd.IntN(2) == 0 {
		if err := s.Write(context.Background(), writeName(i), value); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	key := computeName(i)
	err := s.Execute(context.Background(), []string{key}, func(tx kvpart.Tx) error {
		v, err := tx.Get(key, nil)
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		hash(v, d.loops)
		return nil
	})
	if err != nil {
		return fmt.Errorf("compute: %w", err)
	}
	return nil
}

// WriteText writes the table.
func (t *Dual) WriteText(w io.Writer) error {
	_, _ = fmt.Fprintf(w, "hard_threaded/%s, %d partitions, %d clients: half of the requests compute (%.0f µs each), half write %d KiB (%.0f µs each)\n",
		t.Backend, dualPartitions, t.Clients, t.Compute, t.Value>>10, t.Write)
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "placement\toperations/s\tby the first\tspread\tcpu most/mean\tdisk most/mean\tkeys moved\tp99 moving\tp99 after")
	for _, r := range t.Rows {
		_, _ = fmt.Fprintf(tw, "%s\t%.0f\t%.2f\t%.2f–%.2f\t%.2f\t%.2f\t%.0f\t%.1f ms\t%.1f ms\n",
			r.Name, r.Rate, r.Ratio, r.Low, r.High, r.CPU, r.Disk, r.Moved, r.MovingP99, r.P99)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}
