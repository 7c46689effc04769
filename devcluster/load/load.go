// Package load drives a cluster as clients in several regions would and keeps a ledger
// of the answers; it does not judge, since the caller compares ledger and books.
//
// Each region has holdings, the tokens its clients have acquired and not yet released,
// and a target curve. At every arrival the region acquires or releases a few tokens. The
// further the holdings are below the target, the more likely is an acquire, and likewise
// a release above it. A region releases only tokens that it holds. Each of several
// entities has a share of the curve and of the arrivals. The ledger books the moves of
// an entity's tokens for the entities above it too.
//
// Arrivals form an open loop: they do not wait for answers to earlier requests, and a
// latency counts from the moment the request was due. While too many requests are under
// way, arrivals are shed and counted.
//
// A request with an unknown outcome is repeated under its id at the site that may have
// executed it, until an answer settles the outcome.
package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/httpapi"
)

// Defaults of the fields of [Config] that are zero.
const (
	// DefaultMaxTokens is the most tokens a request moves.
	DefaultMaxTokens = 5
	// DefaultWait is how long an acquire may wait for tokens.
	DefaultWait = 2 * time.Second
	// DefaultInFlight is the most requests of a region under way at once.
	DefaultInFlight = 256
	// DefaultResolveFor is how long an unknown outcome is pursued.
	DefaultResolveFor = 30 * time.Second
)

// answerMargin is the time beyond its wait after which the client gives a request up as
// unknown.
const answerMargin = 10 * time.Second

// Config configures a load. Zero values mean the defaults.
type Config struct {
	// Entities are the entities to load, at least a single entity; they must exist.
	Entities []Entity
	// Regions are the regions that make load, at least a single region.
	Regions []Region
	// Rate is the requests per second of all regions together, above zero.
	Rate float64
	// MaxTokens is the most tokens a request moves; each request moves 1 to MaxTokens.
	MaxTokens int64
	// Wait is how long an acquire may wait for tokens; negative: not at all.
	Wait time.Duration
	// InFlight is the most requests of a region under way at once.
	InFlight int
	// ResolveFor is how long an unknown outcome is pursued; the outcome stays unknown
	// after that.
	ResolveFor time.Duration
	// Seed makes arrivals and sizes repeatable.
	Seed uint64
	// RequestPrefix begins every request id; two loads on a cluster need different
	// prefixes.
	RequestPrefix string
	// Ledger keeps the account; nil: a new ledger.
	Ledger *ledger.Ledger
	// Transport carries the requests; nil: kept connections, at most InFlight idle to a
	// region.
	Transport http.RoundTripper
}

// Entity is an entity to load.
type Entity struct {
	// Name is the name of the entity.
	Name string
	// Above are further accounts of the ledger that count the entity's moves: the
	// accounts of the entities above it.
	Above []string
	// Share is the entity's part of every region's target and arrivals, relative to the
	// sum of all shares; above zero.
	Share float64
}

// One returns a single entity that takes all of the load.
func One(name string) []Entity { return []Entity{{Name: name, Share: 1}} }

// Region configures the clients of a region.
type Region struct {
	// Name is the region's name.
	Name string
	// Addr is the address of the region's app manager.
	Addr string
	// Target returns the holdings to follow, in tokens of all entities, at a time since
	// the start.
	Target func(time.Duration) float64
	// Site pins every request to a site; empty: the app manager chooses.
	Site string
}

// Load is a load under way, or before its start. Its methods may be called
// from several goroutines at once, but Run only once.
type Load struct {
	cfg     Config
	regions []*region
	idle    func() // closes idle connections
}

// New checks the configuration and prepares the load.
func New(cfg Config) (*Load, error) {
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = DefaultMaxTokens
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = DefaultInFlight
	}
	if cfg.ResolveFor == 0 {
		cfg.ResolveFor = DefaultResolveFor
	}
	if cfg.Ledger == nil {
		cfg.Ledger = ledger.New(nil)
	}
	switch {
	case len(cfg.Entities) == 0:
		return nil, errors.New("load: no entity")
	case slices.ContainsFunc(cfg.Entities, func(e Entity) bool { return e.Name == "" || !(e.Share > 0) }):
		return nil, errors.New("load: an entity without a name or a share")
	case len(cfg.Regions) == 0:
		return nil, errors.New("load: no regions")
	case cfg.Rate <= 0:
		return nil, fmt.Errorf("load: rate %v, must be above 0", cfg.Rate)
	case cfg.MaxTokens < 0 || cfg.InFlight < 0 || cfg.ResolveFor < 0:
		return nil, errors.New("load: a negative bound")
	}
	l := &Load{cfg: cfg, idle: func() {}}
	if cfg.Transport == nil {
		t := NewTransport(cfg.InFlight)
		l.cfg.Transport, l.idle = t, t.CloseIdleConnections
	}
	for i, r := range cfg.Regions {
		client, err := httpapi.New(r.Addr, l.cfg.Transport)
		if err != nil {
			return nil, fmt.Errorf("load: region %s: %w", r.Name, err)
		}
		if r.Target == nil {
			return nil, fmt.Errorf("load: region %s: no target", r.Name)
		}
		l.regions = append(l.regions, newRegion(&l.cfg, r, client, rand.New(rand.NewPCG(cfg.Seed, uint64(i)))))
	}
	return l, nil
}

// NewTransport returns a transport that keeps up to inFlight idle connections to each
// region.
func NewTransport(inFlight int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = inFlight
	return t
}

// Ledger returns the ledger that the load writes to.
func (l *Load) Ledger() *ledger.Ledger { return l.cfg.Ledger }

// Run makes load until stop is closed. It then waits for the requests under way and for
// each pursuit of an unknown outcome, at most ResolveFor. Once ctx is done, Run abandons
// all requests and returns ctx's error; open outcomes stay unknown.
func (l *Load) Run(ctx context.Context, stop <-chan struct{}) error {
	defer l.idle()
	var wg sync.WaitGroup
	start := time.Now()
	for _, r := range l.regions {
		wg.Go(func() { r.run(ctx, stop, start, l.cfg.Rate/float64(len(l.regions))) })
	}
	wg.Wait()
	return ctx.Err()
}
