package predict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	_ "github.com/samya-db/samya/internal/testheap"
)

func mustModel(tb testing.TB, name string, options Options) Durable {
	tb.Helper()
	m, err := ByName(name, options)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestModels(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name   string
		model  string
		weight float64
		bins   []Bin
		want   Forecast
	}{
		{"nothing observed", None, 0, nil, Forecast{}},
		{"demand", None, 0, []Bin{{5, 7}}, Forecast{}},

		{"nothing observed", RandomWalk, 0, nil, Forecast{}},
		{"last bin", RandomWalk, 0, []Bin{{5, 7}, {-3, 2}}, Forecast{-3, 2, 2, 2}},
		{"peak below net", RandomWalk, 0, []Bin{{5, 1}}, Forecast{5, 5, 5, 5}},
		{"peak below zero", RandomWalk, 0, []Bin{{-5, -1}}, Forecast{-5, 0, 0, 0}},
		{"not a number", RandomWalk, 0, []Bin{{5, 7}, {nan, 1}, {1, nan}, {inf, 1}, {1, -inf}}, Forecast{5, 7, 7, 7}},
		{"too large", RandomWalk, 0, []Bin{{5, 7}, {-math.MaxFloat64, 1}, {1, MaxTokens + 2}}, Forecast{5, 7, 7, 7}},
		{"the largest", RandomWalk, 0, []Bin{{-MaxTokens, MaxTokens}}, Forecast{-1 << 53, 1 << 53, 1 << 53, 1 << 53}},

		{"nothing observed", MeanRate, 0, nil, Forecast{}},
		{"first bin", MeanRate, 0, []Bin{{4, 8}}, Forecast{4, 8, 16, 16}},
		// Deviation 4 → 0.5·4 + 0.5·|16-8| = 6; means (4+8)/2 and (8+16)/2.
		{"second bin", MeanRate, 0.5, []Bin{{4, 8}, {8, 16}}, Forecast{6, 12, 24, 24}},
		{"default weight", MeanRate, 0, []Bin{{8, 8}, {16, 16}}, Forecast{9, 9, 18, 18}},
		{"missing", MeanRate, 0.5, []Bin{{4, 8}, Missing, {8, 16}}, Forecast{6, 12, 24, 24}},
		{"too large", MeanRate, 0.5, []Bin{{4, 8}, {4, MaxTokens + 2}, {-1e300, 8}, {8, 16}}, Forecast{6, 12, 24, 24}},
		{"more than all before", MeanRate, 1, []Bin{{4, 8}, {8, 8}, {1e9, 1e9}}, Forecast{256, 256, 256 + 2*248, 256 + 2*248}},
		{"weight 1 keeps the last bin", MeanRate, 1, []Bin{{8, 8}, {4, 6}}, Forecast{4, 6, 10, 10}},
		{"releases only", MeanRate, 0.5, []Bin{{-4, 0}, {-8, 0}}, Forecast{-6, 0, 0, 0}},
		{"not a number", MeanRate, 0.5, []Bin{{nan, 8}, {4, 8}, {inf, 8}, {4, nan}}, Forecast{4, 8, 16, 16}},
	} {
		t.Run(tc.model+" "+tc.name, func(t *testing.T) {
			m := mustModel(t, tc.model, Options{Weight: tc.weight})
			for _, b := range tc.bins {
				m.Observe(b)
			}
			if got := m.Forecast(); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestNextOfEpochs: in the simplest models, Next of an epoch is High of a single bin.
func TestNextOfEpochs(t *testing.T) {
	for _, name := range []string{MeanRate, RandomWalk} {
		one, many := mustModel(t, name, Options{}), mustModel(t, name, Options{Horizon: 6})
		for _, bin := range []Bin{{4, 8}, {9, 9}, {5, 16}} {
			one.Observe(bin)
			many.Observe(bin)
		}
		if got, want := many.Forecast(), one.Forecast(); got.Next != want.High || got.Next >= got.High {
			t.Errorf("%s: %+v of six bins, %+v of one", name, got, want)
		}
	}
}

func TestForecastsAreFinite(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-100, 100),
					rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64}))
				m, err := ByName(name, Options{
					Weight:   rapid.Float64Range(0.001, 1).Draw(t, "weight"),
					Horizon:  rapid.IntRange(1, 20).Draw(t, "horizon"),
					Quantile: rapid.Float64Range(.5, .999).Draw(t, "quantile"),
					Day:      rapid.SampledFrom([]int{0, 1, 8, 24}).Draw(t, "day"),
				})
				if err != nil {
					t.Fatal(err)
				}
				for range rapid.IntRange(0, 200).Draw(t, "bins") {
					m.Observe(Bin{Net: number.Draw(t, "net"), Peak: number.Draw(t, "peak")})
					f := m.Forecast()
					for _, n := range []float64{f.Expected, f.Median, f.High, f.Next} {
						if math.IsNaN(n) || math.IsInf(n, 0) {
							t.Fatalf("not finite: %+v", f)
						}
					}
					if f.Median < 0 || f.High < f.Median || f.Next < 0 || f.Next > f.High {
						t.Fatalf("out of order: %+v", f)
					}
				}
			})
		})
	}
}

// TestMeanRateCoverage: over noise, about 5 % of bins exceed High, and about 50 % exceed
// Median.
func TestMeanRateCoverage(t *testing.T) {
	const bins = 20000
	m := mustModel(t, MeanRate, Options{Weight: 1. / 32})
	var aboveHigh, aboveMedian float64
	state := uint64(1)
	for i := range bins {
		// The sum of twelve uniform numbers is close to normal, with variance 1.
		peak := 1000.
		for range 12 {
			state = state*6364136223846793005 + 1442695040888963407
			peak += 100 * (float64(state>>11)/(1<<53) - 0.5)
		}
		if f := m.Forecast(); i > 100 {
			if peak > f.High {
				aboveHigh++
			}
			if peak > f.Median {
				aboveMedian++
			}
		}
		m.Observe(Bin{Net: peak, Peak: peak})
	}
	if share := aboveHigh / bins; share < 0.03 || share > 0.10 {
		t.Errorf("%.3f of the bins are above High", share)
	}
	if share := aboveMedian / bins; share < 0.45 || share > 0.55 {
		t.Errorf("%.3f of the bins are above Median", share)
	}
}

func TestByName(t *testing.T) {
	if got := Names(); !slices.IsSorted(got) || len(got) < 12 {
		t.Errorf("Names() = %q", got)
	}
	if _, err := ByName("oracle", Options{}); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an unknown name: %v", err)
	}
	for _, o := range []Options{{Horizon: -1}, {Horizon: 289}, {Quantile: .4}, {Quantile: 1}, {Quantile: math.NaN()}, {Day: -1}, {Day: 86401}} {
		if _, err := ByName(Auto, o); !errors.Is(err, ErrOption) {
			t.Errorf("options %+v: %v", o, err)
		}
	}
	for _, w := range []float64{-0.1, 1.001, math.NaN(), math.Inf(1)} {
		if _, err := ByName(MeanRate, Options{Weight: w}); !errors.Is(err, ErrOption) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
}

func TestStateIsSmall(t *testing.T) {
	for name, size := range map[string]uintptr{
		RandomWalk: unsafe.Sizeof(randomWalk{}),
		MeanRate:   unsafe.Sizeof(meanRate{}),
	} {
		if size > 48 {
			t.Errorf("%s keeps %d bytes, at most 48", name, size)
		}
	}
}

func ExampleByName() {
	model, err := ByName(MeanRate, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, acquired := range []float64{100, 120, 90, 110} {
		model.Observe(Bin{Net: acquired, Peak: acquired})
	}
	f := model.Forecast()
	fmt.Printf("expect %.0f tokens, hold %.0f ready\n", f.Expected, f.High)
	// Output: expect 102 tokens, hold 178 ready
}
