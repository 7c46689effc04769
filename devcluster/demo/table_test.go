package demo

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/httpapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with testdata/name.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, d)
	}
}

// sample is a view in the middle of a demo.
func sample() *view {
	v := &view{
		entity: "acme/vm", limit: 5000, elapsed: 23 * time.Second, remaining: 37 * time.Second,
		read: httpapi.Status{
			Entity: httpapi.Entity{Name: "acme/vm", Limit: 5000}, Available: 1660, Acquired: 3312, InTransit: 28, Complete: true,
			Shares: []httpapi.Share{
				{Site: "as", Left: 1200, Net: 110, Known: true, Redistributions: 12},
				{Site: "au", Left: -20, Net: 1502, Known: true, Redistributions: 12, Waiting: 17},
				{Site: "eu", Left: 300, Net: 800, Known: true, Redistributions: 11},
				{Site: "us", Left: 180, Net: 900, Known: true, Redistributions: 12},
				{Site: "sa"},
			},
		},
		total:           rates{requests: 597.5, grants: 301},
		redistributions: 12,
	}
	for i, region := range Regions() {
		n := uint64(i)
		v.stats.Regions = append(v.stats.Regions, load.RegionStats{
			Region: region,
			Counts: load.Counts{Requests: 2760 + n, Granted: 1380 + 7*n, Released: 1370, Refused: 3 * n},
			Latency: load.Latency{
				P50: time.Duration(1234+n) * time.Microsecond, P99: time.Duration(9-n) * 61 * time.Millisecond,
			},
		})
		v.stats.Total = load.Counts{Requests: 13810, Granted: 6970, Refused: 30}
		v.rates = append(v.rates, rates{requests: 120, grants: 60 + float64(n)/3})
	}
	v.stats.Latency = load.Latency{P50: 1236 * time.Microsecond, P99: 488 * time.Millisecond}
	return v
}

func TestTable(t *testing.T) {
	golden(t, "table.txt", strings.Join(sample().table(), "\n")+"\n"+sample().line()+"\n")
}

// shown returns the visible part of a line.
func shown(line string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, line, _ = strings.Cut(rest, "m")
	}
}

func TestTableFits(t *testing.T) {
	large := sample()
	large.limit = 1<<53 - 1
	large.entity = strings.Repeat("x", 256)
	large.read.Shares[0].Left = 9_999_999
	large.read.Shares[0].Net = 99_999_999
	for name, v := range map[string]*view{"usual": sample(), "empty": {}, "large": large} {
		for _, line := range v.table() {
			if n := utf8.RuneCountInString(shown(line)); n > tableWidth && name != "large" {
				t.Errorf("%s: %d characters in %q", name, n, shown(line))
			}
			if n := utf8.RuneCountInString(shown(clip(line, tableWidth))); n > tableWidth {
				t.Errorf("%s: %d characters are left of %q", name, n, shown(line))
			}
		}
	}
}

func TestScreenRedrawsInPlace(t *testing.T) {
	var out strings.Builder
	s := &screen{w: &out, terminal: func() (int, int, bool) { return 80, 40, true }}
	for range 2 {
		if err := s.show(sample()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	rows := len(sample().table())
	up := fmt.Sprintf("\x1b[%dA", rows)
	if strings.Count(text, "\n") != 2*rows || strings.Count(text, up) != 1 {
		t.Errorf("%d lines for two tables of %d, cursor moves up %d times", strings.Count(text, "\n"), rows, strings.Count(text, up))
	}
	if !strings.HasPrefix(text, "\x1b[?25l") || !strings.HasSuffix(text, "\x1b[?25h") {
		t.Error("the cursor is not hidden at first and shown at last")
	}
	out.Reset()
	if err := s.close(); err != nil || out.Len() > 0 {
		t.Errorf("a second close writes %q, %v", out.String(), err)
	}
}

func TestScreenPrintsLinesWhereNoTableFits(t *testing.T) {
	for name, terminal := range map[string]func() (int, int, bool){
		"no terminal": nil,
		"lost it":     func() (int, int, bool) { return 0, 0, false },
		"too low":     func() (int, int, bool) { return 80, 10, true },
		"too narrow":  func() (int, int, bool) { return 20, 40, true },
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := &screen{w: &out, terminal: terminal}
			for second := range 21 {
				v := sample()
				v.elapsed = time.Duration(second) * time.Second
				if err := s.show(v); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Count(out.String(), "\n"); got != 4 || strings.Contains(out.String(), "\x1b") {
				t.Errorf("%d lines in 20 s, want one every 5 s and no escapes:\n%s", got, out.String())
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -20: "-20", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %q, want %q", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0.00", 0.123: "0.12", 12.345: "12.3", 1234.5: "1,235"} {
		if got := decimal(x); got != want {
			t.Errorf("decimal(%v) = %q, want %q", x, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-time.Second: "0:00", 59 * time.Second: "0:59", 61 * time.Second: "1:01"} {
		if got := clock(d); got != want {
			t.Errorf("clock(%s) = %q, want %q", d, got, want)
		}
	}
}
