package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestLifelineEndsTheProcess(t *testing.T) {
	stdin, other := io.Pipe()
	s := served{exitWithStdin: true}
	ctx, cancel := s.lifeline(t.Context(), stdin)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("ended while somebody holds the other end")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("not ended")
	}
	without, cancel := new(served).lifeline(t.Context(), strings.NewReader(""))
	defer cancel()
	if err := without.Err(); err != nil {
		t.Errorf("ended without having been asked to watch: %v", err)
	}
}

func TestSignalsEndTheContext(t *testing.T) {
	ctx, hurry, release := signals(t.Context())
	release()
	if ctx.Err() == nil {
		t.Error("released and not ended")
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		t.Error("a release counts as a signal")
	}
	select {
	case <-hurry:
		t.Error("in a hurry without a signal")
	default:
	}
}
