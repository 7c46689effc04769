package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// SoakOptions are the options of a watch of a system's memory under load.
type SoakOptions struct {
	// System is asked in the way named Way, on the hot entity. The watch is on the
	// memory of its first process.
	System System
	Way    string
	// Time is the length of the load.
	Time time.Duration
	// Every is the interval between looks at memory, at most a 25th of Time.
	Every time.Duration
	// Dir and Progress are as in [Options].
	Dir      string
	Progress func(string)
}

// Soak is the result of a watch.
type Soak struct {
	// Seconds is the length of the load, Rate its operations a second.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`
	// P999 is as in [Sample].
	P999 float64 `json:"p999_us"`
	// Memory is the resident memory in bytes, look by look. Mapped is its part in
	// pages of files, which the system takes back when it is short.
	Memory []int64 `json:"memory"`
	Mapped []int64 `json:"mapped"`
	// First, Second and Last are medians of the first, second and last fifth.
	First  float64 `json:"first_bytes"`
	Second float64 `json:"second_bytes"`
	Last   float64 `json:"last_bytes"`
	// LastMapped is the median of Mapped in the last fifth.
	LastMapped float64 `json:"last_mapped_bytes"`
	// Slope is the growth in bytes a minute, fitted to all but the first fifth.
	Slope float64 `json:"slope_bytes_a_minute"`
	// Flat reports whether the last fifth is at most a tenth above the second.
	Flat bool `json:"flat"`
}

const (
	// soakParts is the number of parts of the time, each at least a minute in five.
	soakParts = 5
	// mostGrowth is the largest ratio of the last part to the second.
	mostGrowth = 1.1
)

var errTooShort = errors.New("too short to tell whether memory grows")

// RunSoak makes load for a while and watches the memory. It fails if the system
// does not do its job. The result says whether memory is flat.
func RunSoak(ctx context.Context, o *SoakOptions) (*Soak, error) {
	if o.Every <= 0 || o.Time/soakParts < 5*o.Every {
		return nil, fmt.Errorf("compare: soak for %s, a look every %s: %w", o.Time, o.Every, errTooShort)
	}
	s := &Soak{}
	var memoryErr error
	report, err := Run(ctx, &Options{
		Systems: []System{o.System}, Rounds: 1, Time: o.Time, Dir: o.Dir, Progress: o.Progress,
		Wanted: func(c Cell) bool { return c.Way == o.Way && c.Workload == Hot },
		observe: func(ctx context.Context, pids []int) {
			memoryErr = s.watch(ctx, o, pids[0])
		},
	})
	if err != nil {
		return nil, err
	}
	if memoryErr != nil {
		return nil, fmt.Errorf("compare: %w", memoryErr)
	}
	sample := report.Cells[0].Samples[0]
	s.Seconds, s.Rate, s.P999 = sample.Seconds, sample.Rate, sample.P999
	return s, s.judge(o.Every)
}

// watch looks at a process's memory until ctx ends.
func (s *Soak) watch(ctx context.Context, o *SoakOptions, pid int) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		all, mapped, err := resident("/proc", pid)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		s.Memory, s.Mapped = append(s.Memory, all), append(s.Mapped, mapped)
		if time.Since(told) >= 10*time.Second && o.Progress != nil {
			told = time.Now()
			o.Progress(fmt.Sprintf("resident memory %d MiB, of which files %d", all/mib, mapped/mib))
		}
	}
}

// judge computes the figures from the looks at memory.
func (s *Soak) judge(every time.Duration) error {
	part := len(s.Memory) / soakParts
	if part == 0 {
		return fmt.Errorf("compare: %d looks at memory: %w", len(s.Memory), errTooShort)
	}
	values, mapped := make([]float64, len(s.Memory)), make([]float64, len(s.Mapped))
	for i := range values {
		values[i], mapped[i] = float64(s.Memory[i]), float64(s.Mapped[i])
	}
	s.LastMapped = median(mapped[len(mapped)-part:])
	s.First, s.Second, s.Last = median(values[:part]), median(values[part:2*part]), median(values[len(values)-part:])
	s.Slope = slope(values[part:]) * float64(time.Minute) / float64(every)
	s.Flat = s.Last <= mostGrowth*s.Second
	return nil
}

// slope returns the growth of values from a value to the next, by least squares.
func slope(values []float64) float64 {
	n := float64(len(values))
	var sum, weighted float64
	for i, v := range values {
		sum += v
		weighted += float64(i) * v
	}
	middle := (n - 1) / 2
	spread := n * (n*n - 1) / 12 // the sum of (i - middle)^2
	if spread == 0 {
		return 0
	}
	return (weighted - middle*sum) / spread
}

// resident returns a process's resident memory and its part in pages of files, in
// bytes.
func resident(proc string, pid int) (all, mapped int64, err error) {
	b, err := os.ReadFile(proc + "/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	// The second and the third field are in pages.
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return 0, 0, fmt.Errorf("memory of process %d: %w", pid, errStat)
	}
	page := int64(os.Getpagesize())
	for i, to := range []*int64{&all, &mapped} {
		pages, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("memory of process %d: %w: %w", pid, errStat, err)
		}
		*to = pages * page
	}
	return all, mapped, nil
}

const mib = 1 << 20

// WriteText writes the result for a terminal.
func (s *Soak) WriteText(w io.Writer) error {
	verdict := "flat"
	if !s.Flat {
		verdict = "IT GROWS"
	}
	_, err := fmt.Fprintf(w, `%.0f s of load: %s/s, p99.9 %.2f ms
resident memory, medians: first fifth %.0f MiB, second %.0f MiB, last %.0f MiB, of which pages of files %.0f MiB
growth after the first fifth: %.1f MiB a minute
last fifth over the second: %.2f, at most %.2f: %s
`, s.Seconds, thousands(s.Rate), s.P999/1000, s.First/mib, s.Second/mib, s.Last/mib, s.LastMapped/mib, s.Slope/mib, s.Last/s.Second, mostGrowth, verdict)
	return err
}
