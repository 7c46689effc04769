// Package ycsb makes the core workloads of the Yahoo! Cloud Serving Benchmark, A to
// F, and reads and writes workloads as the files of Repart-KV. A client's workload
// depends on the seed alone. The package does not run workloads.
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

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations. The first three are the kinds of Repart-KV's files.
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
	Limit int    // of a scan: the most keys; of a Modify of a kvlab.Mix: the records to write
	Key   string // of a scan: its start
}

// Distribution is a distribution of requests over keys.
type Distribution string

// The distributions.
const (
	// Zipfian requests the k-th most wanted record in proportion to 1/k^Theta. The
	// rank of a record is unrelated to its number. YCSB itself draws from 10^10
	// records and folds the draws, so that its most wanted of 100,000 records are
	// wanted half as often.
	Zipfian Distribution = "zipfian"
	// Latest is Zipfian with the newest record as the most wanted.
	Latest Distribution = "latest"
	// Uniform requests all records alike.
	Uniform Distribution = "uniform"
)

// Distributions are all distributions.
var Distributions = []Distribution{Zipfian, Latest, Uniform}

// Mix is the shares of operations in a workload; they sum to 1.
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

// Options are the options of a workload.
type Options struct {
	Mix     Mix
	Records int // number of initial records, from 1 to MaxRecords
	Clients int // from 1 to MaxClients
	// ScanMin and ScanMax bound the uniform length of scans, within 1 and
	// kvpart.MaxScan. YCSB has 1 and 100.
	ScanMin, ScanMax int
	Seed             uint64
}

// check checks the options.
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

// Workload is the common part of a workload's clients. It does not change.
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

// Names returns the keys of the initial records, by their numbers. The caller must
// not change them.
func (w *Workload) Names() []string { return w.names }

// Name returns the key of a record: YCSB's key, which scatters records over the
// keys.
func Name(record int) string {
	// FNV-1a as in YCSB, of eight bytes, the lowest first.
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

// Generator makes the operations of a client, without end.
type Generator struct {
	w        *Workload
	rnd      *rand.Rand
	client   int
	inserted int // by this client
	zipf     zipf
}

// Client returns the generator of a client, from 0. A client assumes that other
// clients insert about as fast: a key that it reads may not be there yet.
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
