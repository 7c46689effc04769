// Package reload takes up changes of small files while a process runs: it looks again and
// again, bounds what it reads, and tells faults apart, so that each is logged once. It does
// not know what the files mean.
package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Every calls look after each interval, until ctx ends.
func Every(ctx context.Context, interval time.Duration, look func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			look()
		}
	}
}

// Read reads a file of at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > most:
		return nil, fmt.Errorf("%s: %d bytes, at most %d", path, info.Size(), most)
	case info.IsDir():
		return nil, errors.New(path + " is a directory")
	}
	return os.ReadFile(path)
}

// Fault remembers the error of the last look. Several goroutines may use it.
type Fault struct {
	mu   sync.Mutex
	last string
}

// Fresh reports whether a look failed otherwise than the one before; nil is no failure.
func (f *Fault) Fresh(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.last == text
	f.last = text
	return err != nil && !again
}
