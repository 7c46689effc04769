package ratelab

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowly is worst again: each interval between any two ends.
func slowly(spans []Span, gain, rate, burst int64) int64 {
	most := int64(None)
	for _, a := range spans {
		for _, b := range spans {
			n := int64(0)
			for _, s := range spans {
				if s.Sent >= a.Sent && s.Answered <= b.Answered {
					n++
				}
			}
			if n > 0 {
				most = max(most, n*gain-rate*(b.Answered-a.Sent)-burst)
			}
		}
	}
	return most
}

// TestWorst compares the sweep with the slow way.
func TestWorst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
			sent := rapid.Int64Range(0, 40).Draw(t, "sent")
			return Span{sent, sent + rapid.Int64Range(0, 12).Draw(t, "took")}
		}), 1, 30).Draw(t, "spans")
		gain, rate, burst := rapid.Int64Range(1, 9).Draw(t, "gain"), rapid.Int64Range(0, 5).Draw(t, "rate"), rapid.Int64Range(0, 9).Draw(t, "burst")
		got, want := worst(spans, gain, rate, burst), slowly(spans, gain, rate, burst)
		// The sweep also looks at intervals without grants, which are below every bound.
		if got != want && (want > -burst || got > -burst || got < want) {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// TestPlanted: a bucket of 100 a second is used as fast as it allows; a token more is found.
func TestPlanted(t *testing.T) {
	const limit, period = 100, time.Second
	var grants []Span
	at := func(ms int64) Span { return Span{ms * 1e6, ms*1e6 + 2e5} }
	for range limit {
		grants = append(grants, at(5000)) // a full bucket at once
	}
	for i := range int64(2000) {
		grants = append(grants, at(5000+10*(i+1)))
	}
	rand.Shuffle(len(grants), func(i, j int) { grants[i], grants[j] = grants[j], grants[i] })
	if e := Excess(grants, limit, period); e > 0 || e < -2 {
		t.Errorf("%d more than the bound, want at most 0 and nearly", e)
	}
	for n := range int64(3) {
		grants = append(grants, at(11_003))
		if e := Excess(grants, limit, period); e != n+1 && e != n {
			t.Errorf("%d planted: %d found", n+1, e)
		}
	}
	if e := Excess(grants, limit, period); e < 2 {
		t.Errorf("3 planted: %d found", e)
	}
	// The span of a grant may lie in no short interval.
	if e := Excess([]Span{{0, 1e9}, {0, 1e9}}, 1, time.Second); e != 0 {
		t.Errorf("2 grants within a second: %d", e)
	}
	if Excess(nil, 1, time.Second) != None {
		t.Error("no grants")
	}
}

// TestPlantedWindow: windows of a second with 10 tokens each.
func TestPlantedWindow(t *testing.T) {
	const second = int64(time.Second)
	base := int64(1_700_000_000) * second
	var grants []Span
	for w := range int64(20) {
		for i := range int64(10) {
			grants = append(grants, Span{base + w*second + 9e8 + i*1e6, base + w*second + 9e8 + i*1e6 + 1e6})
		}
	}
	if e := WindowExcess(grants, 10, time.Second); e != 0 {
		t.Errorf("%d more than the limit", e)
	}
	// The grant is of window 4 or 5, which are full: both together have 21.
	over := append(grants, Span{base + 5*second - 1e6, base + 5*second + 1e6})
	if e := WindowExcess(over, 10, time.Second); e != 1 {
		t.Errorf("%d over, want 1", e)
	}
	// At the beginning of the next window 10 are no excess for windows.
	if e := WindowExcess(append(slices.Clip(grants), Span{base + 20*second, base + 20*second + 1e6}), 10, time.Second); e != 0 {
		t.Errorf("%d over, want 0", e)
	}
}
