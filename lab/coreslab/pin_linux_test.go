package coreslab

import (
	"errors"
	"runtime"
	"testing"
)

// TestPin: the process runs on a single core, and after that on as many as before.
func TestPin(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	undo, err := pin(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("on %d cores", n)
	}
	if _, err := pin(2); !errors.Is(err, ErrOptions) {
		t.Errorf("two cores of one: %v", err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("on %d cores, %d before", n, before)
	}
	if _, err := busy(1); err != nil {
		t.Error(err)
	}
}
