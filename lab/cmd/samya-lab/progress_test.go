package main

import (
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	for _, c := range []struct {
		step, steps int
		took        time.Duration
		want        string
	}{
		{0, 4, 0, "[........................] 0/4"},
		{1, 4, 2 * time.Second, "[######..................] 1/4, about 6s left:"},
		{4, 4, time.Minute, "[########################] 4/4"},
		{7, 4, time.Minute, "[########################] 4/4"},
		{0, 0, 0, "[........................] 0/1"},
	} {
		if got := bar(c.step, c.steps, c.took); got != c.want {
			t.Errorf("step %d of %d: %q, want %q", c.step, c.steps, got, c.want)
		}
	}
}

// Where nobody watches, the first step and the last are told, and the other steps at
// least some time apart.
func TestStepsAreLines(t *testing.T) {
	var said strings.Builder
	clock := time.Unix(0, 0)
	l := &lab{stderr: &said}
	tell := l.steps("count", func() time.Time { return clock })
	for step := 1; step <= 10; step++ {
		clock = clock.Add(lineEvery / 3)
		tell(step, 10, "counting")
	}
	got := strings.Count(said.String(), "\n")
	if !strings.Contains(said.String(), "count 1/10: counting") || !strings.Contains(said.String(), "count 10/10: counting") || got != 4 {
		t.Errorf("%d lines: %s", got, said.String())
	}
}
