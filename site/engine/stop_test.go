package engine_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// TestAllIsStoredAtAStop: the engine carries out all that the core has gathered at a
// stop, in however many transactions.
func TestAllIsStoredAtAStop(t *testing.T) {
	const entities = 150
	var data stored.Restored
	for i := range entities {
		name, generation := fmt.Sprintf("e%03d", i), uint64(i+1)
		data.Entities = append(data.Entities, stored.Entity{Name: name, Generation: generation, Initial: 300, Limit: 300, Version: 1})
		data.Books = append(data.Books, stored.Books{Name: name, Generation: generation, Left: 100})
	}
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		e, stop := runOn(t, w, 0, data)
		for n := range 2 * entities {
			if n == entities {
				<-time.After(6 * time.Second) // a bin
			}
			var key attempt.Key
			binary.BigEndian.PutUint64(key[:], uint64(n))
			a, err := e.Do(t.Context(), func(c input.Call) input.Input {
				return &input.Acquire{Call: c, Entity: fmt.Sprintf("e%03d", n%entities), Tokens: 1, Request: key}
			})
			if err != nil || a.Code != answer.OK {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		if len(w.forecasts) != 0 {
			t.Fatalf("stored are %v before the stop", w.forecasts)
		}
		if err := e.Submit(input.Stop{}); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		all := 0
		for _, n := range w.forecasts {
			all += n
		}
		if all != entities || len(w.forecasts) < 3 {
			t.Errorf("stored are %v, want %d in several transactions", w.forecasts, entities)
		}
	})
}

// TestAStopEndsAfterAFailedCommit: a stop does not wait for a commit that will never
// come.
func TestAStopEndsAfterAFailedCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error, 1)}
		e, stop := run(t, w, 0)
		w.gate <- fmt.Errorf("the disk is gone")
		if _, err := e.Do(t.Context(), acquire(1, 1, 0)); err == nil {
			t.Error("an acquire is answered that is not durable")
		}
		if err := stop(); err == nil {
			t.Error("the failure is not told")
		}
	})
}
