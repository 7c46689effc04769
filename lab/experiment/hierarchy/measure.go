package hierarchy

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/samya-db/samya/site/partitions"
)

// subject is the system under a setup.
type subject interface {
	// under makes requests while fn runs, and returns when all are answered. The
	// context of fn ends when requests fail.
	under(ctx context.Context, fn func(context.Context) error) error
	// answered returns the number of answered requests.
	answered() int64
	stats() partitions.Stats
	// check fails unless the books of all entities add up.
	check(ctx context.Context) error
	close() error
}

// look is the state of a subject at a time.
type look struct {
	at       time.Time
	cpu      time.Duration
	answered int64
	stats    partitions.Stats
}

func lookAt(s subject, now func() time.Time) (look, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return look{}, fmt.Errorf("reading the processor time: %w", err)
	}
	l := look{stats: s.stats()}
	l.at, l.answered = now(), s.answered()
	l.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return l, nil
}

// Run is the measurement between two looks.
type Run struct {
	// Rate is the number of requests answered a second.
	Rate float64 `json:"requests_per_second"`
	// Cores is the number of processors used. CPU is the processor time of a
	// request, in microseconds.
	Cores float64 `json:"cores"`
	CPU   float64 `json:"cpu_us_per_request"`
	// Cross is the share of requests on several partitions, of all requests served
	// by partitions. Passed is the share of all requests that no partition served.
	Cross  float64 `json:"cross_share"`
	Passed float64 `json:"passed_share"`
	// Imbalance is the load of the busiest partition over the mean.
	Imbalance float64 `json:"imbalance"`
}

// between returns the measurement between two looks.
func between(from, to *look) Run {
	wall, n := to.at.Sub(from.at).Seconds(), float64(to.answered-from.answered)
	used := (to.cpu - from.cpu).Seconds()
	served := float64(to.stats.Served - from.stats.Served)
	passed := float64(to.stats.Passed - from.stats.Passed)
	r := Run{
		Rate: n / wall, Cores: used / wall, CPU: 1e6 * used / max(n, 1),
		Cross:  float64(to.stats.Cross-from.stats.Cross) / max(served, 1),
		Passed: passed / max(served+passed, 1), Imbalance: 1,
	}
	most, sum := 0., 0.
	for i := range to.stats.Partitions {
		n := float64(to.stats.Partitions[i].Served - from.stats.Partitions[i].Served)
		most, sum = max(most, n), sum+n
	}
	if sum > 0 {
		r.Imbalance = most * float64(len(to.stats.Partitions)) / sum
	}
	return r
}

// wait waits for d, unless the context ends before.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("making requests: %w", context.Cause(ctx))
	}
}

// longest bounds a measurement, as a multiple of the time asked for.
const longest = 100

// measure makes requests for a warm-up and then for o.Time, and returns the
// measurement of the second part.
func measure(ctx context.Context, s subject, o *Options) (r Run, err error) {
	err = s.under(ctx, func(ctx context.Context) error {
		if err := wait(ctx, o.Warm); err != nil {
			return err
		}
		from, err := lookAt(s, o.now)
		if err != nil {
			return err
		}
		// A busy machine may give no answer for a while: such a measurement is
		// worthless.
		for range longest {
			if err := wait(ctx, o.Time); err != nil {
				return err
			}
			to, err := lookAt(s, o.now)
			if r = between(&from, &to); err != nil || r.Rate > 0 {
				return err
			}
		}
		return nil
	})
	return r, err
}

// Settling is the way of a subject to a stable map.
type Settling struct {
	// Settled reports whether the map was stable by the deadline.
	Settled bool    `json:"settled"`
	Seconds float64 `json:"seconds"`
	// First is the share across partitions before the first map, Last the share at
	// the end.
	First float64 `json:"first_cross_share"`
	Last  float64 `json:"last_cross_share"`
}

const (
	// settleEvery is the length of a window. In settleCalm windows in a row there
	// must be no new map, no new split, and shares across partitions within
	// settleWithin. A setup that does not learn needs two windows.
	settleEvery  = 250 * time.Millisecond
	settleCalm   = 8
	settleWithin = .02
)

// settle makes requests until the subject's map is stable or the deadline has
// passed. It calls tell with its progress.
func settle(ctx context.Context, s subject, su setup, o *Options, tell func(string)) (st Settling, err error) {
	began := o.now()
	err = s.under(ctx, func(ctx context.Context) error {
		last, err := lookAt(s, o.now)
		if err != nil {
			return err
		}
		calmly, learns := settleCalm, su.learns() && o.Partitions > 1
		if !learns {
			calmly = 2
		}
		var calm []Run
		told := began
		st.First = -1
		for !st.Settled && last.at.Sub(began) < o.Settle {
			if err := wait(ctx, settleEvery); err != nil {
				return err
			}
			next, err := lookAt(s, o.now)
			if err != nil {
				return err
			}
			r := between(&last, &next)
			if c := &next.stats.Control; st.First < 0 || c.Applied == 0 {
				st.First = r.Cross
			}
			st.Last = r.Cross
			if next.stats.Control.Applied != last.stats.Control.Applied || len(next.stats.Split) != len(last.stats.Split) {
				calm = calm[:0]
			} else {
				calm = append(calm[max(0, len(calm)+1-calmly):], r)
			}
			last = next
			st.Settled = len(calm) == calmly && alike(calm) && (!learns || learnt(&last.stats, su))
			if last.at.Sub(told) >= time.Second {
				told = last.at
				tell(fmt.Sprintf("%.0f s, %s requests/s, %.1f %% across, imbalance %.2f, %d maps, %d split", last.at.Sub(began).Seconds(),
					number(r.Rate), 100*r.Cross, r.Imbalance, last.stats.Control.Applied, len(last.stats.Split)))
			}
		}
		return nil
	})
	st.Seconds = o.now().Sub(began).Seconds()
	return st, err
}

// learnt reports whether the subject has learnt all that the setup lets it learn. A single
// partition has nothing to learn.
func learnt(st *partitions.Stats, su setup) bool {
	split := su.Above != SplitRoot
	for _, e := range st.Split {
		split = split || e.Name == rootName
	}
	return split && st.Control.Applied > 0
}

func alike(runs []Run) bool {
	low, high := runs[0].Cross, runs[0].Cross
	for _, r := range runs[1:] {
		low, high = min(low, r.Cross), max(high, r.Cross)
	}
	return high-low < settleWithin
}
