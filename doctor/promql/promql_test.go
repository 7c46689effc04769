package promql

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/deploy/monitoring"
	"github.com/samya-db/samya/internal/testfuzz"
)

var now = time.Unix(1_700_000_000, 0)

// minutes is a history with a sample a minute, the last one now.
func minutes(series map[string][]float64) *History {
	h := NewHistory(5*time.Minute, time.Hour)
	for text, values := range series {
		metric, rest, _ := strings.Cut(text, " ")
		labels := make(Labels)
		for pair := range strings.FieldsSeq(rest) {
			name, v, _ := strings.Cut(pair, "=")
			labels[name] = v
		}
		for i, v := range values {
			h.Add(metric, labels, now.Add(time.Duration(i-len(values)+1)*time.Minute), v)
		}
	}
	return h
}

func told(points []Point) string {
	var all []string
	for _, p := range points {
		all = append(all, strings.TrimSuffix(p.Labels.Key(), ",")+" "+fmt.Sprintf("%g", p.Value))
	}
	return strings.Join(all, "; ")
}

// TestEval: what expressions give, computed by hand. A test of package doctor compares with
// Prometheus.
func TestEval(t *testing.T) {
	h := minutes(map[string][]float64{
		"up job=site at=us c=p":    {1, 1, 1},
		"up job=site at=eu c=p":    {1, 0, 0},
		"up job=am at=us c=p":      {1, 1, 1},
		"peers at=us c=p":          {1, 1, 1},
		"peers at=eu c=p":          {2, 0, 0},
		"n at=us":                  {0, 60, 120},
		"n at=eu":                  {100, 160, 10}, // it began anew
		"once at=us":               {3},
		"start at=us":              {1, 1, 2, 2, 3},
		"b le=0.1 at=us":           {0, 60},
		"b le=0.2 at=us":           {0, 90},
		"b le=+Inf at=us":          {0, 100},
		"b le=0.1 at=eu":           {0, 0},
		"b le=0.2 at=eu":           {0, 0},
		"b le=+Inf at=eu":          {0, 0},
		"odd at=us":                {math.NaN()},
		"limit e=x at=us":          {10},
		"limit e=x at=eu":          {10},
		"limit e=y at=us":          {0},
		"taken e=x at=us":          {4},
		"taken e=x at=eu":          {5},
		"taken e=y at=us":          {5},
		"long label=a,b=c other=d": {1},
	})
	for expr, want := range map[string]string{
		`1 + 2 * 3 - 4 / 2`:            ` 5`,
		`(1 + 2) * 3`:                  ` 9`,
		`3.2e6`:                        ` 3.2e+06`,
		`up{job="site"} == 0`:          `at="eu",c="p",job="site" 0`,
		`up{job!="site"}`:              `at="us",c="p",job="am" 1`,
		`up{job=~"si.e|x", at!~"e.*"}`: `at="us",c="p",job="site" 1`,
		`up{job=~"sit"}`:               ``,
		`count by (job) (up)`:          `job="am" 1; job="site" 2`,
		`sum(up)`:                      ` 2`,
		`min by (c, job) (up)`:         `c="p",job="am" 1; c="p",job="site" 0`,
		`max by (nothing) (up)`:        ` 1`,
		`rate(n[5m])`:                  `at="eu" 0.5833333333333334; at="us" 1`,
		`increase(n[5m]) > 100`:        `at="us" 120`,
		`increase(n[2m])`:              `at="eu" 10; at="us" 60`,
		`rate(once[5m])`:               ``,
		`changes(start[5m])`:           `at="us" 2`,
		`changes(start[2m])`:           `at="us" 1`,
		`min_over_time(n[5m])`:         `at="eu" 10; at="us" 0`,
		`clamp_min(n, 100)`:            `at="eu" 100; at="us" 120`,
		`histogram_quantile(0.5, sum by (le, at) (rate(b[5m])))`:     `at="us" 0.08333333333333334`,
		`histogram_quantile(0.75, rate(b[5m]))`:                      `at="us" 0.15000000000000002`,
		`histogram_quantile(0.99, rate(b[5m]))`:                      `at="us" 0.2`,
		`peers < on (c) group_left () (count by (c) (up) - 1)`:       `at="eu",c="p" 0; at="us",c="p" 1`,
		`sum by (e) (taken) / (max by (e) (limit) > 0) > 0.8`:        `e="x" 0.9`,
		`sum by (c) (peers) / on (c) clamp_min(sum by (c) (up), 10)`: `c="p" 0.1`,
		`once or n > 100`:        `at="us" 3`,
		`n > 100 or up{at="eu"}`: `at="eu",c="p",job="site" 0; at="us" 120`,
		`up == 1 == 1`:           `at="us",c="p",job="am" 1; at="us",c="p",job="site" 1`,
		`2 * once`:               `at="us" 6`,
		`nothing > 0`:            ``,
		`long`:                   `label="a,b=c",other="d" 1`,
		`count by (c) (count by (c, at) (up == 1)) > 1`: ``,
	} {
		e, err := Parse(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		points, err := e.Eval(h, now)
		if got := told(points); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", expr, got, err, want)
		}
	}
	for _, expr := range []string{`n / on (c) up`, `up / on (c) sum by (c) (peers)`} {
		e, err := Parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		if points, err := e.Eval(h, now); err == nil && len(points) > 0 {
			t.Errorf("%s: %s, and several series have the same labels", expr, told(points))
		}
	}
	e, err := Parse("n")
	if err != nil {
		t.Fatal(err)
	}
	if points, err := e.Eval(h, now.Add(5*time.Minute)); err != nil || len(points) != 0 {
		t.Errorf("a value older than it may be counts: %v, %v", points, err)
	}
}

// TestRefused: what is not known is refused, and named.
func TestRefused(t *testing.T) {
	for expr, says := range map[string]string{
		"":                             "it ends where a number",
		"up +":                         "it ends where a number",
		"avg by (x) (up)":              `"by" where nothing more`,
		"irate(n[5m])":                 "function irate",
		"rate(n)":                      "argument 1 of rate",
		"rate(n[5m]":                   "it ends",
		"n[5m]":                        "is a range",
		"n[5m] > 1":                    "> of a range",
		"n offset 5m":                  `"offset" where nothing more`,
		"n[5]":                         "a duration",
		"n[0m]":                        "not within",
		"n[9999w]":                     "not within",
		"up{job}":                      "one of =",
		`up{job=~"("}`:                 "missing closing",
		"up{job=site}":                 "a text",
		`up{job="a" at="b"}`:           `","`,
		"1 > up":                       "a number stands left of >",
		"up / on (c) 2":                "of a number",
		"up or 2":                      "of a number",
		"up or on (c) n":               "or with on",
		"up / on (c) group_left (x) n": "group_left takes labels",
		"sum(1)":                       "sum of no series",
		"up; n":                        "is not understood",
		strings.Repeat("(", 99):        "deep",
		strings.Repeat("1+", 2049):     "at most 4096",
		"up unless n":                  `"unless" where nothing more`,
	} {
		_, err := Parse(expr)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", expr, err, says)
		}
	}
}

// TestAbout: an expression tells its metrics, its range and its bound.
func TestAbout(t *testing.T) {
	e, err := Parse(`sum(rate(a{x="y"}[5m])) / clamp_min(sum(increase(b[1h])), 1) > 2 * 0.05`)
	if err != nil {
		t.Fatal(err)
	}
	op, bound, ok := e.Bound()
	if m := e.Metrics(); !slices.Equal(m, []string{"a", "b"}) || e.Range() != time.Hour || op != ">" || bound != .1 || !ok {
		t.Errorf("%v, %s, %s %g %v", m, e.Range(), op, bound, ok)
	}
	for _, expr := range []string{"a", "a > b", "a + 1"} {
		if e, err = Parse(expr); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := e.Bound(); ok {
			t.Errorf("%s has a bound", expr)
		}
	}
}

// TestForgets: a history keeps no sample older than it has to.
func TestForgets(t *testing.T) {
	h := NewHistory(time.Minute, time.Minute)
	for i := range 1000 {
		h.Add("n", Labels{"a": "b"}, now.Add(time.Duration(i)*time.Second), 1)
	}
	h.Add("n", Labels{"a": "b"}, now, 1)
	if n := len(h.of("n")[0].samples); n != 61 {
		t.Errorf("%d samples", n)
	}
}

// FuzzParse: no text breaks the reader, and what it reads can be evaluated.
func FuzzParse(tf *testing.F) {
	f := testfuzz.On(tf)
	for line := range strings.Lines(string(monitoring.Alerts) + string(monitoring.Recording)) {
		if _, expr, ok := strings.Cut(line, "expr: "); ok {
			f.Add(expr)
		}
	}
	f.Add(`up{a=~"x|y",b!='z'}[5m]`)
	h := minutes(map[string][]float64{"up job=site": {0, 1}, "n": {1, 2, 3}})
	f.Fuzz(func(_ *testing.T, expr string) {
		e, err := Parse(expr)
		if err != nil {
			return
		}
		_, _ = e.Eval(h, now) // several series may have the same labels
		_, _ = e.Metrics(), e.Range()
		_, _, _ = e.Bound()
	})
}
