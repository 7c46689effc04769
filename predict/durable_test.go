package predict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/internal/testfuzz"
)

// demand draws a series with a season of a day of 24 bins, bursts, a gap and a
// level shift.
func demand(seed uint64, bins int) []Bin {
	r := rand.New(rand.NewPCG(seed, 0))
	series := make([]Bin, bins)
	for i := range series {
		level := 20 + 15*math.Sin(2*math.Pi*float64(i)/24) + 5*r.NormFloat64()
		if r.IntN(30) == 0 {
			level *= 4
		}
		if i > bins*2/3 {
			level *= 10
		}
		switch {
		case i%97 > 93:
			series[i] = Missing
		default:
			net := math.Round(level * (r.Float64() - .2))
			series[i] = Bin{Net: net, Peak: max(0, net) + float64(r.IntN(9))}
		}
	}
	return series
}

func horizons(t *testing.T, test func(t *testing.T, name string, o Options)) {
	t.Helper()
	for _, name := range Names() {
		lengths := []int{1, 5}
		if name == Auto {
			lengths = append(lengths, 2*shortEpoch) // which it learns by other means
		}
		for _, h := range lengths {
			t.Run(fmt.Sprintf("%s over %d", name, h), func(t *testing.T) {
				t.Parallel()
				test(t, name, Options{Horizon: h, Day: 24})
			})
		}
	}
}

// TestNoLookAhead: no forecast made before a bin depends on it or on later ones. All
// models run beside each other, also under the race detector: tests of the same models
// that take longer leave it out.
func TestNoLookAhead(t *testing.T) {
	const bins = 500
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		one, other := demand(1, bins), demand(1, bins)
		for _, change := range []int{60, 410} {
			copy(other, one)
			for i := change; i < bins; i++ {
				other[i] = Bin{Net: 1e5 * float64(i%7), Peak: 1e6}
			}
			a, b := mustModel(t, name, o), mustModel(t, name, o)
			for i := range bins {
				a.Observe(one[i])
				b.Observe(other[i])
				if i < change && a.Forecast() != b.Forecast() {
					t.Fatalf("bins from %d on change the forecast after bin %d: %+v, %+v", change, i, a.Forecast(), b.Forecast())
				}
				if i == bins-1 && name != None && a.Forecast() == b.Forecast() {
					t.Fatalf("the bins from %d on change nothing: %+v", change, a.Forecast())
				}
			}
		}
	})
}

// TestState: a model that is stored and taken up goes on as if nothing had been.
func TestState(t *testing.T) {
	race.OneGoroutine(t)
	const bins = 560
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		series := demand(2, bins)
		m := mustModel(t, name, o)
		for i, bin := range series {
			if i == 0 || i == 130 || i == 500 {
				state, err := m.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				again := mustModel(t, name, o)
				again.Observe(Bin{Net: 1e6, Peak: 1e6}) // must leave no trace
				if err := again.UnmarshalBinary(state); err != nil {
					t.Fatal(err)
				}
				if m.Forecast() != again.Forecast() {
					t.Fatalf("after %d bins: %+v, taken up %+v", i, m.Forecast(), again.Forecast())
				}
				for _, next := range series[i:] {
					m.Observe(next)
					again.Observe(next)
					if m.Forecast() != again.Forecast() {
						t.Fatalf("taken up after %d bins: %+v, want %+v", i, again.Forecast(), m.Forecast())
					}
				}
				if err := m.UnmarshalBinary(state); err != nil {
					t.Fatal(err)
				}
			}
			m.Observe(bin)
		}
	})
}

// TestStateAtAnyTime: a state is taken up whenever it was stored: right after the first
// bin, after missing ones, and after a gap.
func TestStateAtAnyTime(t *testing.T) {
	race.OneGoroutine(t)
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		r := rand.New(rand.NewPCG(7, 7))
		m, again := mustModel(t, name, o), mustModel(t, name, o)
		for i, bin := range demand(9, 150) {
			switch r.IntN(12) {
			case 0:
				bin = Bin{Net: math.NaN(), Peak: math.NaN()}
			case 1:
				Skip(m, 1+r.IntN(2*o.Day))
			case 2:
				bin = Bin{}
			}
			m.Observe(bin)
			state, err := m.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := again.UnmarshalBinary(state); err != nil {
				t.Fatalf("after %d bins: %v", i+1, err)
			}
			if m.Forecast() != again.Forecast() {
				t.Fatalf("after %d bins: %+v, taken up %+v", i+1, m.Forecast(), again.Forecast())
			}
		}
	})
}

// TestSkip: a skipped gap has the effect of an observed gap, but for the fits that are
// left out, and takes no time.
func TestSkip(t *testing.T) {
	race.OneGoroutine(t)
	series := demand(6, 120)
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		for _, gap := range []int{0, 1, 15, 16, 40, 700, 5 * 24} {
			m, want := mustModel(t, name, o), mustModel(t, name, o)
			for _, bin := range series {
				m.Observe(bin)
				want.Observe(bin)
			}
			Skip(m, gap)
			for range gap {
				want.Observe(Missing)
			}
			if got, high := m.Forecast(), want.Forecast().High; got.High > 2*high+1 || got.High < high/2-1 {
				t.Errorf("after a gap of %d: %+v, want about %+v", gap, got, want.Forecast())
			}
			switch name {
			case nameAR, ARLAD, ARIMA, LSTM, Season, SeasonLAD:
			default:
				compare(t, gap, m, want, series)
			}
		}
	})
	m := mustModel(t, Auto, Options{Horizon: 6, Day: 17280})
	for _, bin := range series {
		m.Observe(bin)
	}
	if cost := testing.AllocsPerRun(10, func() { Skip(m, 7*17280) }); cost > 10 {
		t.Errorf("a week's gap takes %v allocations", cost)
	}
}

// compare shows two models the same, and fails if they do not stay equal.
func compare(t *testing.T, gap int, m, want Durable, series []Bin) {
	t.Helper()
	for i, bin := range series {
		if m.Forecast() != want.Forecast() {
			t.Fatalf("%d bins after a gap of %d: %+v, want %+v", i, gap, m.Forecast(), want.Forecast())
		}
		m.Observe(bin)
		want.Observe(bin)
	}
}

func TestStateRefused(t *testing.T) {
	series := demand(3, 300)
	for _, name := range Names() {
		o := Options{Day: 24, Horizon: 2, Weight: .5}
		m := mustModel(t, name, o)
		fresh := m.Forecast()
		for _, bin := range series {
			m.Observe(bin)
		}
		state, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		flipped := append([]byte(nil), state...)
		flipped[len(flipped)/2] ^= 1
		for what, data := range map[string][]byte{
			"nothing": nil, "cut": state[:len(state)-1], "longer": append(append([]byte(nil), state...), 0), "flipped": flipped,
		} {
			if err := m.UnmarshalBinary(data); !errors.Is(err, errState) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
			if got := m.Forecast(); got != fresh {
				t.Errorf("%s: %s: not as good as new: %+v", name, what, got)
			}
		}
		o.Horizon++
		if err := mustModel(t, name, o).UnmarshalBinary(state); name != None && !errors.Is(err, errState) {
			t.Errorf("%s: taken up with another horizon: %v", name, err)
		}
	}
}

// FuzzState: whatever is taken up is refused, or gives finite forecasts for ever
// after, and takes no more memory than its length allows.
func FuzzState(tf *testing.F) {
	f := testfuzz.On(tf)
	made := func(tb testing.TB, which int) (string, Durable) {
		tb.Helper()
		name, horizon := Names()[which%len(Names())], 3
		if which >= len(Names()) {
			horizon = 2 * shortEpoch
		}
		return name, mustModel(tb, name, Options{Day: 24, Horizon: horizon})
	}
	for i := range 2 * len(Names()) {
		name, m := made(f, i)
		for _, bin := range demand(4, 260) {
			m.Observe(bin)
		}
		state, err := m.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		h := len(header(name, m.stateOptions()))
		f.Add(uint8(i), state[h:len(state)-4])
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		name, m := made(t, int(which)%(2*len(Names())))
		takesUp(t, name, m, body)
		goesOn(t, name, m, 30)
	})
}

// takesUp has a model take up a state with the right header and checksum, so that the
// body is read, and reports whether the model did. Any refusal has to match errState.
func takesUp(t *testing.T, name string, m Durable, body []byte) bool {
	t.Helper()
	err := m.UnmarshalBinary(marshal(name, m.stateOptions(), func(c *codec) { c.buf = append(c.buf, body...) }))
	if err != nil && !errors.Is(err, errState) {
		t.Fatal(err)
	}
	return err == nil
}

// goesOn fails the test unless a model gives finite forecasts over some bins.
func goesOn(t *testing.T, name string, m Model, bins int) {
	t.Helper()
	for i := range bins {
		m.Observe(Bin{Net: float64(i), Peak: float64(2 * i)})
		fc := m.Forecast()
		for _, n := range []float64{fc.Expected, fc.Median, fc.High, fc.Next} {
			if math.IsNaN(n) || math.IsInf(n, 0) {
				t.Fatalf("%s: not finite: %+v", name, fc)
			}
		}
		if fc.Median < 0 || fc.High < fc.Median || fc.Next < 0 || fc.Next > fc.High {
			t.Fatalf("%s: out of order: %+v", name, fc)
		}
	}
}

// TestStateOfAnyNumbers puts numbers that arithmetic does not come back from at every
// third place of a state, in single and in double precision: the state is refused, or
// the forecasts stay finite. FuzzState meets such a number at such a place once in
// thousands of runs.
func TestStateOfAnyNumbers(t *testing.T) {
	race.OneGoroutine(t)
	const each = 3 * 4 // bytes
	first := 4 * rand.IntN(3)
	single := []float32{float32(math.NaN()), math.MaxFloat32}
	double := []float64{math.NaN(), 1e300}
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		m := mustModel(t, name, o)
		for _, bin := range demand(4, 120) {
			m.Observe(bin)
		}
		state, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		head := len(header(name, m.stateOptions()))
		body := state[head : len(state)-4]
		try := func(at int, number []byte) {
			if at+len(number) > len(body) {
				return
			}
			spoilt := slices.Concat(body[:at], number, body[at+len(number):])
			fresh := mustModel(t, name, o)
			if takesUp(t, name, fresh, spoilt) {
				goesOn(t, fmt.Sprintf("%s with %x at %d", name, number, at), fresh, o.Horizon+2)
			}
		}
		for at := first; at < len(body); at += each {
			for _, n := range single {
				try(at, binary.LittleEndian.AppendUint32(nil, math.Float32bits(n)))
			}
			for _, n := range double {
				try(at, binary.LittleEndian.AppendUint64(nil, math.Float64bits(n)))
			}
		}
	})
}

func TestReplace(t *testing.T) {
	race.OneGoroutine(t)
	series := demand(5, 220)
	for _, from := range Names() {
		for _, to := range Names() {
			o := Options{Day: 24}
			old := mustModel(t, from, o)
			for _, bin := range series {
				old.Observe(bin)
			}
			was := old.Forecast()
			m, err := Replace(old, to, o)
			if err != nil {
				t.Fatal(err)
			}
			if old.Forecast() != was {
				t.Errorf("%s to %s: the old one has changed", from, to)
			}
			if from == to && m.Forecast() != was {
				t.Errorf("%s: its state was not kept: %+v, was %+v", from, m.Forecast(), was)
			}
			if from != None && to != None && m.Forecast() == (Forecast{}) {
				t.Errorf("%s to %s: learnt nothing from the newest bins", from, to)
			}
		}
	}
	if _, err := Replace(mustModel(t, Auto, Options{}), "oracle", Options{}); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an unknown name: %v", err)
	}
}

// broken is a point model with numbers that are not finite.
type broken struct{}

func (broken) observe(float64)     {}
func (broken) path(next []float64) { next[0], next[1] = math.NaN(), math.Inf(1) }
func (broken) state(*codec)        {}

func TestFallback(t *testing.T) {
	m := newEpochs("broken", Options{Horizon: 2, Quantile: .95}, broken{})
	m.Observe(Bin{Net: 5, Peak: 5})
	m.Observe(Missing)
	if f := m.Forecast(); f.Expected != 10 || f.Median != 10 || Fallbacks(m) != 4 {
		t.Errorf("got %+v, %d fallbacks; want the last bin twice, and four", f, Fallbacks(m))
	}
}

func TestClamp(t *testing.T) {
	f := Forecast{Expected: -500, Median: 80, High: 1e9, Next: 1e8}
	if got, want := f.Clamp(100), (Forecast{-100, 80, 100, 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestGapsAreMissing: a gap is not taken for a time without demand.
func TestGapsAreMissing(t *testing.T) {
	for _, name := range Names() {
		if name == None {
			continue
		}
		m := mustModel(t, name, Options{Day: 24})
		for i := range 400 {
			m.Observe(Bin{Net: 100 + float64(i%24), Peak: 100 + float64(i%24)})
		}
		for range 20 {
			m.Observe(Missing)
			if f := m.Forecast(); f.Expected < 90 || f.Expected > 135 {
				t.Fatalf("%s: expects %v in a gap, saw 100 to 123 before", name, f.Expected)
			}
		}
	}
}
