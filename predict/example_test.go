package predict_test

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/predict"
)

// show prints a model's forecast after so many bins, with eight bins a day.
func show(name string, demand func(bin int) float64, bins int) {
	m, err := predict.ByName(name, predict.Options{Day: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range bins {
		m.Observe(predict.Bin{Net: demand(i), Peak: demand(i)})
	}
	f := m.Forecast()
	fmt.Printf("expect %.0f after %.0f, hold %.0f ready\n", f.Expected, demand(bins-1), f.High)
}

// It finds by itself that demand repeats itself every day.
func Example_auto() {
	show(predict.Auto, func(i int) float64 { return float64(10 * (i % 8)) }, 200)
	// Output: expect 0 after 70, hold 2 ready
}

// Two bins of demand, two without: it takes two lags to know which is next.
func Example_aR() {
	show("ar", func(i int) float64 { return float64(i / 2 % 2 * 10) }, 104)
	// Output: expect 0 after 10, hold 3 ready
}

// A burst now and then does not move the expectation.
func Example_aRLAD() {
	show(predict.ARLAD, func(i int) float64 { return 20 + float64(i%2*10) + float64(i%17/16*500) }, 170)
	// Output: expect 20 after 530, hold 94 ready
}

// All bins count the same.
func Example_constant() {
	show(predict.Constant, func(i int) float64 { return float64(i) }, 5)
	// Output: expect 2 after 4, hold 4 ready
}

// A season that grows.
func Example_holtWinters() {
	show(predict.HoltWinters, func(i int) float64 { return float64(i%8*10 + i/8) }, 400)
	// Output: expect 50 after 119, hold 50 ready
}

// Nothing is ever expected.
func Example_none() {
	show(predict.None, func(i int) float64 { return float64(i) }, 5)
	// Output: expect 0 after 4, hold 0 ready
}

// The next bin repeats the last.
func Example_randomWalk() {
	show(predict.RandomWalk, func(i int) float64 { return float64(i) }, 5)
	// Output: expect 4 after 4, hold 4 ready
}

// Each bin is three hundredths less than the bin before.
func Example_rLS() {
	show("rls", func(i int) float64 { return 1000 * math.Pow(.97, float64(i)) }, 80)
	// Output: expect 87 after 90, hold 110 ready
}

// Day and night.
func Example_season() {
	show(predict.Season, func(i int) float64 { return float64(100 + i%8/4*100) }, 160)
	// Output: expect 100 after 200, hold 104 ready
}

// Day and night, with a burst now and then.
func Example_seasonLAD() {
	show(predict.SeasonLAD, func(i int) float64 { return float64(100 + i%8/4*100 + i%29/28*900) }, 160)
	// Output: expect 100 after 200, hold 174 ready
}

// The demand at this time yesterday.
func Example_seasonalNaive() {
	show("seasonal-naive", func(i int) float64 { return float64(i % 8) }, 20)
	// Output: expect 4 after 3, hold 6 ready
}

// The newest bins count most.
func Example_smoothing() {
	show("smoothing", func(i int) float64 { return float64(i) }, 5)
	// Output: expect 1 after 4, hold 4 ready
}

// The mean, and a bound above it.
func Example_meanRate() {
	show(predict.MeanRate, func(i int) float64 { return float64(100 + i%2*20) }, 50)
	// Output: expect 111 after 120, hold 132 ready
}
