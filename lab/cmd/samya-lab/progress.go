package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	// barWidth is the width of a full bar, in characters.
	barWidth = 24
	// lineEvery is the least time between two lines outside of a terminal.
	lineEvery = 2 * time.Second
)

// steps returns a function that prints the steps of a task of minutes. On a
// terminal it overwrites a bar; elsewhere it prints a line from time to time, and
// always for the first and the last step.
func (l *lab) steps(name string, now func() time.Time) func(step, steps int, what string) {
	began := now()
	var last time.Time
	return func(step, steps int, what string) {
		at := now()
		if l.isTerminal() {
			_, _ = fmt.Fprintf(l.stderr, "\r\x1b[K%s %s %s", name, bar(step, steps, at.Sub(began)), what) // progress may be lost
			return
		}
		if step > 1 && step < steps && at.Sub(last) < lineEvery {
			return
		}
		last = at
		_, _ = fmt.Fprintf(l.stderr, "%6.1fs %s %d/%d: %s\n", at.Sub(began).Seconds(), name, step, steps, what) // as above
	}
}

// bar draws the progress and the time that the rest may take.
func bar(step, steps int, took time.Duration) string {
	steps = max(steps, 1)
	step = min(max(step, 0), steps)
	full := barWidth * step / steps
	drawn := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), step, steps)
	if step > 0 && step < steps {
		rest := took / time.Duration(step) * time.Duration(steps-step)
		drawn += fmt.Sprintf(", about %v left:", rest.Round(time.Second))
	}
	return drawn
}
