package fake

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Roster is a directory of sites S that a test sets.
type Roster[S any] struct {
	mu      sync.Mutex
	infos   []S
	changes chan struct{}
}

// NewRoster makes a directory of infos.
func NewRoster[S any](infos ...S) *Roster[S] {
	return &Roster[S]{infos: infos, changes: make(chan struct{})}
}

// Sites returns the sites.
func (d *Roster[S]) Sites() []S {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.infos)
}

// Changed returns a channel that is closed at the next change.
func (d *Roster[S]) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

// Set changes the sites.
func (d *Roster[S]) Set(infos ...S) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.infos = infos
	close(d.changes)
	d.changes = make(chan struct{})
}

// InBubble runs a test in simulated time, with the sites named up.
func InBubble(t *testing.T, names []string, test func(t *testing.T, sites map[string]*Site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sites := map[string]*Site{}
		for _, n := range names {
			sites[n] = &Site{Name: n, Members: names}
			sites[n].Up()
		}
		test(t, sites)
		for _, f := range sites {
			f.Kill()
		}
		Pass(time.Minute)
	})
}

// While runs a router for the time of a test, which begins once the router knows the
// sites.
func While(run func(context.Context), test func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { run(ctx); close(done) }()
	Pass(2 * time.Second)
	test()
	cancel()
	<-done
}
