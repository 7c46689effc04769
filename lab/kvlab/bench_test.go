package kvlab

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// benchOptions measures stores that are locked maps, briefly.
func benchOptions(opened *[]*fake, asked *[]kvpart.Options) *BenchOptions {
	return &BenchOptions{
		Rounds: 2, Clients: 2, Records: 50, Operations: 400, ValueSize: 32, Partitions: 3, Every: time.Second, Share: .2, Time: time.Minute, Seed: 1,
		Open: func(o kvpart.Options) (Store, error) {
			f := newFake()
			*opened, *asked = append(*opened, f), append(*asked, o)
			return f, nil
		},
		Progress: func(string) {},
	}
}

func TestBench(t *testing.T) {
	var opened []*fake
	var asked []kvpart.Options
	b, err := RunBench(t.Context(), benchOptions(&opened, &asked))
	if err != nil {
		t.Fatal(err)
	}
	cases := Cases()
	if len(b.Costs) != len(cases) || len(opened) != 2*(len(cases)-2) {
		t.Fatalf("%d costs, %d stores opened", len(b.Costs), len(opened))
	}
	for i, f := range opened {
		if !f.closed || len(f.values) < 50 {
			t.Errorf("store %d: closed %t, %d keys", i, f.closed, len(f.values))
		}
		o := asked[i]
		if bare := o.Strategy == kvpart.Bare; bare != (o.Partitions == 1) || bare != (o.Policy.Kind == "") {
			t.Errorf("opened %+v", o)
		}
	}
	if asked[0].Backend != asked[len(asked)-1].Backend || asked[0].Strategy != asked[len(asked)-1].Strategy {
		t.Error("rounds do not alternate")
	}
	bounds := 0
	for i, c := range b.Costs {
		if len(c.Rounds) != 2 || !(c.Processor > 0) || c.of != cases[i] {
			t.Errorf("%+v", c)
		}
		if c.of.Strategy == "" && c.Net != 0 || c.of.Strategy == kvpart.Soft && c.Bare == 0 {
			t.Errorf("%+v", c)
		}
		if c.of.Bound > 0 {
			bounds++
		}
	}
	// A store that never cuts misses goals, however fast it is.
	if bounds != 4 || len(b.Goals) <= bounds || Met(b.Goals) {
		t.Errorf("%d bounds, goals %+v", bounds, b.Goals)
	}
	var text strings.Builder
	if err := b.WriteText(&text); err != nil || !strings.Contains(text.String(), "soft/btree, A") || !strings.Contains(text.String(), "MISSED") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestBenchErrors(t *testing.T) {
	var opened []*fake
	var asked []kvpart.Options
	o := benchOptions(&opened, &asked)
	refused := errors.New("refused")
	o.Open = func(kvpart.Options) (Store, error) { return nil, refused }
	if _, err := RunBench(t.Context(), o); !errors.Is(err, refused) {
		t.Errorf("%v, want the error of opening", err)
	}
	if _, err := RunCost(t.Context(), o); !errors.Is(err, refused) {
		t.Errorf("%v, want the error of opening", err)
	}
}

// TestBenchRefuses checks that a store that loses data is not measured.
func TestBenchRefuses(t *testing.T) {
	var opened []*fake
	var asked []kvpart.Options
	o := benchOptions(&opened, &asked)
	o.Open = func(kvpart.Options) (Store, error) { return forgetful{newFake()}, nil }
	if _, err := RunBench(t.Context(), o); !errors.Is(err, errShort) {
		t.Errorf("%v, want %v", err, errShort)
	}
}

// forgetful drops the first byte of each written value.
type forgetful struct{ *fake }

func (f forgetful) Write(ctx context.Context, key string, value []byte) error {
	return f.fake.Write(ctx, key, value[1:])
}

func TestCost(t *testing.T) {
	var opened []*fake
	var asked []kvpart.Options
	o, err := RunCost(t.Context(), benchOptions(&opened, &asked))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Turns) != leastTurns || len(opened) != 3*leastTurns+4 || len(o.Shares) != 4 {
		t.Fatalf("%d turns, %d stores, %d shares", len(o.Turns), len(opened), len(o.Shares))
	}
	var first [3]int
	for i := 0; i < 3*leastTurns; i += 3 {
		var seen [3]bool
		for j, o := range asked[i : i+3] {
			kind := 0
			if o.Policy.Kind == kvpart.Async {
				kind = 1
				if o.Policy.Gain < 0 {
					kind = 2
				}
			}
			seen[kind] = true
			if j == 0 {
				first[kind]++
			}
		}
		if seen != [3]bool{true, true, true} {
			t.Errorf("turn %d leaves something out", i/3)
		}
	}
	if min(first[0], first[1], first[2]) < 2 {
		t.Errorf("first were %v", first)
	}
	if math.IsNaN(o.Usual) || Met(o.Goals) {
		t.Errorf("a store that never cuts: %+v", o.Goals)
	}
	var text strings.Builder
	if err := o.WriteText(&text); err != nil || !strings.Contains(text.String(), "turn 10") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestMedian(t *testing.T) {
	if !math.IsNaN(median(nil)) || median([]float64{3, 1, 2}) != 2 || median([]float64{4, 1, 3, 2}) != 2.5 {
		t.Error("no median")
	}
	if Met(nil) || Met([]Goal{atMost("", 2, 1, "")}) || !Met([]Goal{atMost("", 1, 1, ""), atLeast("", 1, 1, "")}) {
		t.Error("goals are judged wrongly")
	}
}
