package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// commute draws days of demand with two peaks and a quiet night, weekends half as busy,
// and a tenth of noise. From the bin change on, the clients' clocks are ahead by hours.
func commute(seed uint64, day, days, change, hours int) []float64 {
	r := rand.New(rand.NewPCG(seed, 40))
	series := make([]float64, day*days)
	for i := range series {
		at := i
		if i >= change {
			at += hours * day / 24
		}
		hour := float64(at%day) / float64(day) * 24
		level := 20 + 300*math.Exp(-(hour-8.5)*(hour-8.5)/3) + 220*math.Exp(-(hour-17.5)*(hour-17.5)/8)
		if at/day%7 > 4 {
			level /= 2
		}
		series[i] = math.Round(level * (1 + .1*r.NormFloat64()))
	}
	return series
}

// TestClockChange: the clocks change by an hour. From the third day on, the error of
// epochs of twelve bins is at most a fifth above the week before. For epochs of six bins
// of 48 a day it is at most a third above. Without the turn it is up to five times as
// large.
func TestClockChange(t *testing.T) {
	for _, tc := range [...]struct {
		day, horizon int
		most         float64
	}{{24, 12, 1.2}, {48, 12, 1.2}, {288, 12, 1.2}, {48, 6, 1.33}} {
		day, horizon := tc.day, tc.horizon
		for _, hours := range []int{-1, 1} {
			for _, change := range []int{18, 19, 23} { // a Friday, a Saturday, a Wednesday
				for seed := range uint64(4) {
					t.Run(fmt.Sprintf("%d of %d bins a day, %+d after %d days, seed %d", horizon, day, hours, change, seed), func(t *testing.T) {
						t.Parallel()
						series := commute(seed, day, change+10, change*day, hours)
						before, after := clockErrors(t, series, day, change, horizon)
						if t.Logf("%.1f before, %.1f after", before, after); after > tc.most*before {
							t.Errorf("mean error %.1f from two days after the change on, %.1f before", after, before)
						}
					})
				}
			}
		}
	}
}

// clockErrors returns the mean error of epochs in the week before the day change, and in
// the week from two days later on.
func clockErrors(t *testing.T, series []float64, day, change, horizon int) (before, after float64) {
	t.Helper()
	m := mustModel(t, Auto, Options{Day: day, Horizon: horizon})
	var bins [2]float64
	for i, net := range series[:len(series)-horizon] {
		m.Observe(Bin{Net: net, Peak: net})
		sum := 0.
		for _, v := range series[i+1 : i+1+horizon] {
			sum += v
		}
		miss := math.Abs(m.Forecast().Expected - sum)
		switch d := i / day; {
		case d >= change-7 && d < change:
			before += miss
			bins[0]++
		case d >= change+2 && d < change+9:
			after += miss
			bins[1]++
		}
	}
	return before / bins[0], after / bins[1]
}

// TestClockKeeps: weekends, a level that doubles, and a day off do not turn the season.
func TestClockKeeps(t *testing.T) {
	const day = 48
	for name, change := range map[string]func(i int, net float64) float64{
		"nothing":    func(_ int, net float64) float64 { return net },
		"level":      func(i int, net float64) float64 { return net * float64(1+i/(20*day)) },
		"a day off":  func(i int, net float64) float64 { return net / float64(1+i/(23*day)%2*2) },
		"no demand":  func(i int, net float64) float64 { return net * float64(1-i/(24*day)%2) },
		"noise only": func(i int, _ float64) float64 { return float64(100 + i*i%61) },
		"releases":   func(_ int, net float64) float64 { return -net },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				m := newAuto(Options{Day: day, Horizon: 12})
				for i, net := range commute(seed, day, 30, 0, 0) {
					m.observe(change(i, net))
					if m.season != nil && m.season.clock.turn != 0 {
						t.Fatalf("seed %d: turned by %d in bin %d of day %d", seed, m.season.clock.turn, i%day, i/day)
					}
				}
			}
		})
	}
}

// TestClockTurns: each change turns the season by an hour, there and back.
func TestClockTurns(t *testing.T) {
	for _, day := range []int{24, 25, 48, 96, 288} {
		m := newAuto(Options{Day: day, Horizon: 12})
		hour := (day + 12) / 24
		series := commute(3, day, 20, 0, 0)
		for range 2 {
			series = append(series, commute(4, day, 7, 0, 1)...)
			series = append(series, commute(5, day, 7, 0, 0)...)
		}
		train(m, series)
		if turn := m.season.clock.turn; turn != 0 {
			t.Errorf("%d bins a day: turned by %d after the clocks went back", day, turn)
		}
		train(m, commute(6, day, 3, 0, 1))
		if turn := m.season.clock.turn; turn != hour {
			t.Errorf("%d bins a day: turned by %d, want %d", day, turn, hour)
		}
		if m.season = newAutoSeason(23, 0); m.season.hourBins() != 0 {
			t.Error("an hour is shorter than a bin")
		}
	}
}
