package kvoracle

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// watchdog notices requests that do not end.
type watchdog struct {
	load *Load
	// since is the time at which a client's beat was first seen, by client.
	since []time.Time
	beats []int64
}

// stacks bounds the part of a deadlock report with goroutines, in bytes.
const stacks = 1 << 16

// look returns a violation if a request has been under way for too long.
func (w *watchdog) look(at time.Time) *Violation {
	var stuck []string
	for i := range w.beats {
		c := w.load.auditor
		if i < len(w.load.clients) {
			c = w.load.clients[i]
		}
		beat := c.beat.Load()
		if beat%2 == 0 || beat != w.beats[i] || w.since[i].IsZero() {
			w.beats[i], w.since[i] = beat, at
			continue
		}
		if at.Sub(w.since[i]) > w.load.o.Patience {
			stuck = append(stuck, fmt.Sprintf("client %d in %s", i, *c.doing.Load()))
		}
	}
	if stuck == nil {
		return nil
	}
	dump := make([]byte, stacks)
	dump = dump[:runtime.Stack(dump, true)]
	return violated(Deadlock, "no end after %v: %s\n%s", w.load.o.Patience, strings.Join(stuck, ", "), dump)
}

// yield lets other goroutines run, as an interruption may do anywhere.
func yield() { runtime.Gosched() }
