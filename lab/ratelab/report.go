package ratelab

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is the result of a run.
type Report struct {
	// Duration is the length of the load in seconds, RoundTrip and Wait are in milliseconds.
	Duration  float64 `json:"duration_s"`
	RoundTrip float64 `json:"round_trip_ms"`
	Wait      float64 `json:"wait_ms"`
	Demand    Demand  `json:"demand"`
	Rows      []Row   `json:"rows"`
}

// Row is the result of a system and a quota.
type Row struct {
	System string `json:"system"`
	Quota  Quota  `json:"quota"`
	// The numbers of requests: all, and by outcome. Unsettled requests may have been granted.
	Offered   int `json:"offered"`
	Granted   int `json:"granted"`
	Unsettled int `json:"unsettled"`
	Failed    int `json:"failed"`
	// Over is by how many tokens grants exceed the bound, in the worst interval. Spare is the
	// number of tokens that the bound had left in the worst interval.
	Over  int64 `json:"over_admission"`
	Spare int64 `json:"spare"`
	// Used is the share of the limit that was granted while demand exceeded it, and Measured
	// how many seconds that was; 0 if never long enough.
	Used     float64 `json:"used_share"`
	Measured float64 `json:"measured_s"`
	// Waited is the share of grants that took longer than WaitedTime.
	Waited float64 `json:"waited_share"`
	// Latencies in milliseconds, since each request was due.
	GrantP50  float64 `json:"grant_p50_ms"`
	GrantP99  float64 `json:"grant_p99_ms"`
	RefuseP50 float64 `json:"refuse_p50_ms"`
	RefuseP99 float64 `json:"refuse_p99_ms"`
}

// WaitedTime tells grants that waited from others: a local answer takes a millisecond.
const WaitedTime = 10 * time.Millisecond

// row judges the requests of a quota.
func (q *loaded) row(l *load) Row {
	r := Row{System: l.name, Quota: *q.Quota, Offered: len(q.requests)}
	var grants, walls []Span
	var took, refusals []time.Duration
	waited := 0
	for _, a := range q.requests {
		switch a.outcome {
		case granted:
			grants = append(grants, Span{int64(a.sent), int64(a.answered)})
			walls = append(walls, a.wall)
			took = append(took, a.answered-a.due)
			if a.answered-a.due > WaitedTime {
				waited++
			}
		case refused:
			refusals = append(refusals, a.answered-a.due)
		case unsettled:
			r.Unsettled++
		case failed:
			r.Failed++
		}
	}
	r.Granted = len(grants)
	if r.Granted > 0 {
		excess := WindowExcess(walls, q.Limit, q.Period)
		if q.Kind == "bucket" {
			excess = Excess(grants, q.Limit, q.Period)
		}
		r.Over, r.Spare = max(0, excess), max(0, -excess)
		r.Waited = float64(waited) / float64(r.Granted)
	}
	r.Used, r.Measured = q.used(l)
	r.GrantP50, r.GrantP99 = quantile(took, .5), quantile(took, .99)
	r.RefuseP50, r.RefuseP99 = quantile(refusals, .5), quantile(refusals, .99)
	return r
}

// quantile is in milliseconds; 0 of nothing.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))].Seconds() * 1e3
}

// savedPeriods is the number of periods at the begin of a busy phase that are left out.
const savedPeriods = 10

// used is the share of the limit that was granted while demand exceeded it, and for how long
// in seconds: over the windows that lie whole in a busy phase, or for a bucket over a busy
// phase but for its first periods, in which tokens saved before are used up. A grant counts
// when it is answered.
func (q *loaded) used(l *load) (share, measured float64) {
	var spans [][2]time.Duration
	d, p := &l.o.Demand, q.Period
	for at := time.Duration(0); at < l.o.Duration; {
		busy, from, to := d.busy(at)
		at = to
		to = min(to, l.o.Duration)
		switch {
		case !busy:
		case q.Kind == "bucket":
			if from += min(savedPeriods*p, (to-from)/4); from < to {
				spans = append(spans, [2]time.Duration{from, to})
			}
		default:
			// The first window begins at a time of the calendar.
			begins := time.Duration(l.start.Add(from).UnixNano())
			first := from + (begins + p - 1).Truncate(p) - begins
			if to-first >= p {
				spans = append(spans, [2]time.Duration{first, first + (to - first).Truncate(p)})
			}
		}
	}
	n, long := 0, time.Duration(0)
	for _, s := range spans {
		long += s[1] - s[0]
		for _, a := range q.requests {
			if a.outcome == granted && a.answered >= s[0] && a.answered < s[1] {
				n++
			}
		}
	}
	if long == 0 {
		return 0, 0
	}
	return float64(n) / (q.perSecond() * long.Seconds()), long.Seconds()
}

// The goals of samya's rows.
const (
	goalBucket = .99
	goalWindow = .97
)

// missed tells which goals a row misses.
func (r *Row) missed() (all []string) {
	if r.Over > 0 {
		all = append(all, fmt.Sprintf("%s, %v: %d tokens more than the bound", r.System, &r.Quota, r.Over))
	}
	goal := goalWindow
	if r.Quota.Kind == "bucket" {
		goal = goalBucket
	}
	if r.System == Samya && r.Measured > 0 && r.Used < goal {
		all = append(all, fmt.Sprintf("%s, %v: uses %.4f of the limit, goal %.2f", r.System, &r.Quota, r.Used, goal))
	}
	return all
}

// Over is the over-admission of samya's rows.
func (r *Report) Over() (n int64) {
	for i := range r.Rows {
		if r.Rows[i].System == Samya {
			n += r.Rows[i].Over
		}
	}
	return n
}

// Missed tells which goals were missed.
func (r *Report) Missed() (all []string) {
	for i := range r.Rows {
		all = append(all, r.Rows[i].missed()...)
	}
	return all
}

// WriteText writes the tables.
func (r *Report) WriteText(w io.Writer) error {
	d := &r.Demand
	if _, err := fmt.Fprintf(w, "%d regions, %.0f ms apart, %.0f s; offered %.1f and %.1f times the limit for %v and %v in turn, "+
		"%.0f %% in a region that changes every %v; samya waits %.0f ms at most\n\n",
		len(Regions), r.RoundTrip, r.Duration, d.CalmLoad, d.BusyLoad, d.Calm, d.Busy, 100*d.Hot, d.Move, r.Wait); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t") // Flush tells the error
			}
			_, _ = fmt.Fprint(t, c)
		}
		_, _ = fmt.Fprintln(t)
	}
	ms := func(f float64) string { return fmt.Sprintf("%.1f", f) }
	line("system", "quota", "offered", "granted", "unsettled", "failed", "over", "spare", "used", "over s", "waited", "grant p50 ms", "p99", "refusal p50 ms", "p99")
	for i := range r.Rows {
		a := &r.Rows[i]
		used := "-"
		if a.Measured > 0 {
			used = fmt.Sprintf("%.4f", a.Used)
		}
		line(a.System, &a.Quota, a.Offered, a.Granted, a.Unsettled, a.Failed, a.Over, a.Spare, used, fmt.Sprintf("%.0f", a.Measured),
			fmt.Sprintf("%.1f %%", 100*a.Waited), ms(a.GrantP50), ms(a.GrantP99), ms(a.RefuseP50), ms(a.RefuseP99))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "\nover: tokens granted beyond the bound, in the worst interval; spare: what the bound had left there\n"+
		"used: granted while demand exceeded the limit, as a share of the limit; waited: grants that took more than 10 ms\n"); err != nil {
		return err
	}
	for _, m := range r.Missed() {
		if _, err := fmt.Fprintln(w, "MISSED:", m); err != nil {
			return err
		}
	}
	return nil
}
