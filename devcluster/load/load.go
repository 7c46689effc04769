// Package load drives a cluster as clients in several regions would and keeps
// a ledger of what they were told; it judges nothing: whether ledger and books
// agree is for its caller to say.
//
// Each region has holdings, the tokens its clients have acquired and not yet
// released, and a target curve which the holdings follow: at every arrival the
// region acquires or releases a few tokens, the more likely the one the
// further the holdings are from the target on its side. Nothing is released
// that is not held. With several entities each has its share of the curve and of
// the arrivals; what moves of one is booked in the ledger for those above it too.
//
// Arrivals are those of an open loop: they come when they come, whether or not
// earlier requests were answered, and a latency counts from the moment the
// request was due. What arrives while too many requests are under way is shed
// and counted.
//
// A request whose outcome is unknown is repeated under its id at the site that
// may have executed it, until an answer settles it.
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

// answerMargin is how much longer than its wait a request may take before the
// client gives it up as unknown.
const answerMargin = 10 * time.Second

// Config says what load to make. Zero values mean the defaults.
type Config struct {
	// Entities are those whose tokens move, at least one; they must exist.
	Entities []Entity
	// Regions are the regions that make load, at least one.
	Regions []Region
	// Rate is the requests per second of all regions together, above zero.
	Rate float64
	// MaxTokens is the most tokens a request moves; each moves 1 to that many.
	MaxTokens int64
	// Wait is how long an acquire may wait for tokens; negative: not at all.
	Wait time.Duration
	// InFlight is the most requests of a region under way at once.
	InFlight int
	// ResolveFor is how long an unknown outcome is pursued; after that it stays
	// unknown.
	ResolveFor time.Duration
	// Seed makes arrivals and sizes repeatable; request ids hold it.
	Seed uint64
	// RequestPrefix begins every request id; two loads on one cluster need
	// different ones.
	RequestPrefix string
	// Ledger keeps the account; nil: a new one.
	Ledger *ledger.Ledger
	// Transport carries the requests; nil: connections kept alive, as many as
	// requests may be under way.
	Transport http.RoundTripper
}

// Entity is an entity whose tokens move.
type Entity struct {
	// Name is its name.
	Name string
	// Above are the accounts of the ledger that count what moves of it besides its
	// own: those of the entities above it.
	Above []string
	// Share is its share of every region's target and arrivals, of the sum of all;
	// above zero.
	Share float64
}

// One is an entity that stands for itself and takes all of the load.
func One(name string) []Entity { return []Entity{{Name: name, Share: 1}} }

// Region is a region's clients.
type Region struct {
	// Name is the region's name.
	Name string
	// Addr is the address of its app manager.
	Addr string
	// Target gives the holdings to follow, in tokens of all entities, at a time since
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

// NewTransport returns a transport for inFlight requests of a region at a time, on
// connections that are kept.
func NewTransport(inFlight int) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = inFlight
	return t
}

// Ledger returns the ledger that the load writes to.
func (l *Load) Ledger() *ledger.Ledger { return l.cfg.Ledger }

// Run makes load until stop is closed, then waits for the requests under way
// and for the pursuit of unknown outcomes, each at most ResolveFor. Once ctx is done it
// abandons all that and returns ctx's error; what was under way stays unknown.
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
