package replay

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/replay/sites"
)

// TestSaturate: a few clients have their requests served in sequence each, many as fast
// as the processors go.
func TestSaturate(t *testing.T) {
	o := Options{Service: 20 * time.Microsecond}
	one, err := Saturate(o, sites.New(nil), 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	// A client has its answer after 1.32 ms, but for other requests between.
	if want := 5 / .00132; math.Abs(one.PerSecond()-want) > .02*want || math.Abs(one.Latency.P50-1.32) > 1e-9 || one.Refused+one.TimedOut != 0 {
		t.Errorf("%v a second, %+v", one.PerSecond(), one)
	}
	most, err := Saturate(o, sites.New(nil), 200, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// Five processors take 20 µs for a request; 200 clients wait for theirs.
	if want := 5 / 20e-6; math.Abs(most.PerSecond()-want) > .02*want || most.Latency.P50 < 3.5 || most.Latency.P50 > 4.5 {
		t.Errorf("%v a second, %+v", most.PerSecond(), most)
	}
	// Three tokens for fifteen clients.
	o.Limit = 3
	refuse, err := SettingByName("refuse")
	if err != nil {
		t.Fatal(err)
	}
	scarce, err := Saturate(o, sites.New(refuse.Configure), 3, 100*time.Millisecond)
	if err != nil || scarce.Committed == 0 || scarce.Refused == 0 {
		t.Errorf("%+v, %v", scarce, err)
	}
}

// TestSaturateUnsound: books that do not balance are seen here too.
func TestSaturateUnsound(t *testing.T) {
	for what, system := range map[string]*counter{
		"generous": {generous: true}, "off": {off: -1}, "silent": {silent: true}, "twice": {twice: true},
		"check": {check: errors.New("tokens are lost")},
	} {
		if _, err := Saturate(Options{Limit: 2}, system, 1, 100*time.Millisecond); !errors.Is(err, ErrUnsound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Saturate(Options{}, &counter{}, 0, time.Second); err == nil {
		t.Error("no clients")
	}
}

// TestSaturateMix: clients read beside acquires and releases, whoever holds a token. A
// single site answers a stale read, all sites answer an exact read.
func TestSaturateMix(t *testing.T) {
	rate := func(mix Mix) float64 {
		t.Helper()
		r, err := SaturateMix(Options{}, sites.New(nil), 4, 2*time.Second, mix)
		if err != nil {
			t.Fatal(err)
		}
		if r.Refused+r.TimedOut != 0 {
			t.Errorf("%+v: %d refused, %d timed out", mix, r.Refused, r.TimedOut)
		}
		return r.PerSecond()
	}
	none, half, all := rate(Mix{}), rate(Mix{Reads: .5}), rate(Mix{Reads: 1})
	if half < none || all < half {
		t.Errorf("%v a second without reads, %v with half, %v with reads alone: no read waits for a disk", none, half, all)
	}
	// The way to the farthest site takes a hundred times longer than the way to the own.
	if exact := rate(Mix{Reads: 1, Exact: true}); exact > all/50 || exact == 0 {
		t.Errorf("%v exact reads a second, %v stale ones", exact, all)
	}
	if _, err := SaturateMix(Options{}, sites.New(nil), 1, time.Second, Mix{Reads: 1.5}); err == nil {
		t.Error("more reads than requests")
	}
}
