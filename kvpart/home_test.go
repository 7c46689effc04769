package kvpart

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
)

// closingEngine is an engine that knows only whether it is closed.
type closingEngine struct {
	engine.Engine
	closed atomic.Bool
}

func (e *closingEngine) Put(string, []byte) error {
	if e.closed.Load() {
		return engine.ErrBroken
	}
	return nil
}

func (e *closingEngine) Close() error {
	e.closed.Store(true)
	return nil
}

// TestRetiringGenerationIsNotWritten takes homes to write to while generations follow
// each other and the former are closed. No home is closed before its writer has let go of
// it, whenever the writer took it.
func TestRetiringGenerationIsNotWritten(t *testing.T) {
	const generations = 150_000
	hs := &homes{
		factory: engine.Factory{Open: func(engine.Config) (engine.Engine, error) { return new(closingEngine), nil }},
		width:   2, most: 3, kick: make(chan struct{}, 1),
	}
	switchTo := func(number uint32) {
		g, err := hs.fresh(number)
		if err != nil {
			t.Fatal(err)
		}
		hs.present.Store(g)
		hs.follow(g)
	}
	switchTo(1)
	var ended atomic.Bool
	var wrote atomic.Int64
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; !ended.Load(); i++ {
				h := hs.target(int32(w))
				if i%64 == 0 {
					runtime.Gosched()
				}
				if err := h.engine.Put("k", nil); err != nil {
					t.Errorf("a home of generation %d is closed and written to", h.gen.number)
					ended.Store(true)
				}
				hs.drop(h)
				wrote.Add(1)
			}
		})
	}
	for n := uint32(2); n < generations && !ended.Load(); n++ {
		switchTo(n)
		if err := hs.retire(); err != nil {
			t.Fatal(err)
		}
	}
	ended.Store(true)
	wg.Wait()
	if err := hs.retire(); err != nil {
		t.Fatal(err)
	}
	if len(hs.all) != 1 {
		t.Errorf("%d generations are left after %d writes", len(hs.all), wrote.Load())
	}
}
