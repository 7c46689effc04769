// Package ycsb makes the core workloads of the Yahoo! Cloud Serving Benchmark, A
// to F, each client's the same for the same seed, and reads and writes workloads
// as the files of Repart-KV. It refuses to run them.
package ycsb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/kvpart"
)

// Kind says what an operation does.
type Kind uint8

// The kinds of operations. The first three are those of Repart-KV's files.
const (
	Read Kind = iota
	Write
	Scan
	// Modify reads a key and writes it; a file has it as a Read and a Write.
	Modify
	kinds
)

func (k Kind) String() string {
	if k >= kinds {
		return "kind " + strconv.Itoa(int(k))
	}
	return [...]string{"read", "write", "scan", "modify"}[k]
}

// Op is an operation of a client.
type Op struct {
	Kind  Kind
	Limit int    // of a scan: how many keys at most
	Key   string // of a scan: where it begins
}

// Distribution says which keys are wanted how often.
type Distribution string

// The distributions.
const (
	// Zipfian wants the k-th most wanted record as often as 1/k^Theta; which one
	// that is has nothing to do with its number. YCSB itself draws of 10^10 and
	// folds what it drew, so that its most wanted of 100,000 are wanted half as often.
	Zipfian Distribution = "zipfian"
	// Latest is as Zipfian with the newest record as the most wanted.
	Latest Distribution = "latest"
	// Uniform wants all records as often.
	Uniform Distribution = "uniform"
)

// Distributions are all of them.
var Distributions = []Distribution{Zipfian, Latest, Uniform}

// Mix is what a workload is made of: shares of operations, together 1.
type Mix struct {
	Read, Update, Insert, Scan, Modify float64
	Distribution                       Distribution
}

// mixes are YCSB's core workloads.
var mixes = map[string]Mix{
	"A": {Read: .5, Update: .5, Distribution: Zipfian},
	"B": {Read: .95, Update: .05, Distribution: Zipfian},
	"C": {Read: 1, Distribution: Zipfian},
	"D": {Read: .95, Insert: .05, Distribution: Latest},
	"E": {Scan: .95, Insert: .05, Distribution: Zipfian},
	"F": {Read: .5, Modify: .5, Distribution: Zipfian},
}

// MixOf returns the mix of a core workload, A to F.
func MixOf(workload string) (Mix, error) {
	m, ok := mixes[strings.ToUpper(workload)]
	if !ok {
		return Mix{}, fmt.Errorf("no workload %q, known are A to F", workload)
	}
	return m, nil
}

// The bounds of options.
const (
	MaxRecords = 1 << 27
	MaxClients = 1 << 12
)

// Options says what workload to make.
type Options struct {
	Mix     Mix
	Records int // that are there before, from 1 to MaxRecords
	Clients int // from 1 to MaxClients
	// ScanMin and ScanMax bound the length of scans, which is uniform: from 1 to
	// kvpart.MaxScan. YCSB's are 1 and 100.
	ScanMin, ScanMax int
	Seed             uint64
}

// check tells which option is out of its range.
func (o *Options) check() error {
	m := o.Mix
	sum := 0.0
	for _, share := range []float64{m.Read, m.Update, m.Insert, m.Scan, m.Modify} {
		if !(share >= 0) {
			return errors.New("a share of the mix is below 0")
		}
		sum += share
	}
	switch {
	case sum < .999 || sum > 1.001:
		return fmt.Errorf("the shares of the mix are %v together, not 1", sum)
	case !slices.Contains(Distributions, m.Distribution):
		return fmt.Errorf("no distribution %q, known are %v", m.Distribution, Distributions)
	case o.Records < 1 || o.Records > MaxRecords:
		return fmt.Errorf("records: %d is not within 1 and %d", o.Records, MaxRecords)
	case o.Clients < 1 || o.Clients > MaxClients:
		return fmt.Errorf("clients: %d is not within 1 and %d", o.Clients, MaxClients)
	case o.ScanMin < 1 || o.ScanMax > kvpart.MaxScan || o.ScanMin > o.ScanMax:
		return fmt.Errorf("scan length: %d to %d is not within 1 and %d", o.ScanMin, o.ScanMax, kvpart.MaxScan)
	}
	return nil
}

// Workload is what the clients of a workload share. It does not change.
type Workload struct {
	o     Options
	names []string
	order []int32 // the records, the most wanted first; nil unless Zipfian
	zipf  zipf
}

// New makes a workload.
func New(o Options) (*Workload, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Workload{o: o, names: make([]string, o.Records)}
	for i := range w.names {
		w.names[i] = Name(i)
	}
	if o.Mix.Distribution != Uniform {
		w.zipf = newZipf(o.Records)
	}
	if o.Mix.Distribution == Zipfian {
		w.order = make([]int32, o.Records)
		for i := range w.order {
			w.order[i] = int32(i)
		}
		rnd := rand.New(rand.NewPCG(o.Seed, 0))
		rnd.Shuffle(len(w.order), func(i, j int) { w.order[i], w.order[j] = w.order[j], w.order[i] })
	}
	return w, nil
}

// Names are the keys of the records that are there before, by their numbers. They
// are not to be changed.
func (w *Workload) Names() []string { return w.names }

// Name is the key of a record: YCSB's, which scatters records over the keys.
func Name(record int) string {
	// FNV-1a as YCSB has it, of eight bytes, the lowest first.
	hash, n := uint64(0xCBF29CE484222325), uint64(record)
	for range 8 {
		hash = (hash ^ n&0xff) * 1099511628211
		n >>= 8
	}
	if int64(hash) < 0 {
		hash = -hash
	}
	return "user" + strconv.FormatUint(hash, 10)
}

// Generator makes the operations of one client, without end.
type Generator struct {
	w        *Workload
	rnd      *rand.Rand
	client   int
	inserted int // by this client
	zipf     zipf
}

// Client returns the operations of a client, from 0. A client knows of what others
// insert only that they are about as fast: what it reads may not be there yet.
func (w *Workload) Client(client int) *Generator {
	return &Generator{w: w, rnd: rand.New(rand.NewPCG(w.o.Seed, uint64(client)+1)), client: client, zipf: w.zipf}
}

// Next makes an operation.
func (g *Generator) Next() Op {
	m := &g.w.o.Mix
	switch u := g.rnd.Float64(); {
	case u < m.Insert:
		record := g.w.o.Records + g.inserted*g.w.o.Clients + g.client
		g.inserted++
		return Op{Kind: Write, Key: Name(record)}
	case u < m.Insert+m.Update:
		return Op{Kind: Write, Key: g.key()}
	case u < m.Insert+m.Update+m.Scan:
		return Op{Kind: Scan, Key: g.key(), Limit: g.w.o.ScanMin + g.rnd.IntN(g.w.o.ScanMax-g.w.o.ScanMin+1)}
	case u < m.Insert+m.Update+m.Scan+m.Modify:
		return Op{Kind: Modify, Key: g.key()}
	default:
		return Op{Kind: Read, Key: g.key()}
	}
}

// key draws a key that is there, or will be soon.
func (g *Generator) key() string {
	present := g.w.o.Records + g.inserted*g.w.o.Clients
	var record int
	switch g.w.o.Mix.Distribution {
	case Zipfian:
		record = int(g.w.order[g.zipf.rank(g.rnd)])
	case Latest:
		if g.zipf.n < present {
			g.zipf.grow(present)
		}
		record = present - 1 - g.zipf.rank(g.rnd)
	default:
		record = g.rnd.IntN(present)
	}
	if record < len(g.w.names) {
		return g.w.names[record]
	}
	return Name(record)
}
