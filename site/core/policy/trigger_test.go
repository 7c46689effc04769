package policy

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/input"
)

func TestTriggers(t *testing.T) {
	// calm is a site with demand that has just enough.
	calm := func(change func(*Situation)) Situation {
		s := Situation{
			Left: 50, Rate: 80, Pace: 60, Limit: 5000, LastGrant: 1000, SinceTrigger: 1000, Direct: true,
			Forecast: predict.Forecast{Expected: 40, Median: 60, High: 90, Next: 30},
		}
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		change                    func(*Situation)
		reactive, lowWater, paper string
	}{
		"enough":               {func(*Situation) {}, "", "", ""},
		"an acquire waits":     {func(s *Situation) { s.Queued, s.SinceTrigger = 1, 0 }, "reactive", "reactive", "reactive"},
		"a limit waits":        {func(s *Situation) { s.Changing = true }, "limit", "limit", "limit"},
		"waiting comes first":  {func(s *Situation) { s.Queued, s.Changing, s.Left = 1, true, -1 }, "reactive", "reactive", "reactive"},
		"debt":                 {func(s *Situation) { s.Left = -1 }, "debt", "debt", "debt"},
		"0.25 s of the pace":   {func(s *Situation) { s.Left = 15 }, "", "", "proactive"},
		"less":                 {func(s *Situation) { s.Left = 14 }, "", "proactive", "proactive"},
		"more than expected":   {func(s *Situation) { s.Left, s.Forecast.Expected = 14, 13 }, "", "proactive", ""},
		"a burst":              {func(s *Situation) { s.Left, s.Pace, s.SinceTrigger = 49, 200, 300 }, "", "proactive", ""},
		"just tried in it":     {func(s *Situation) { s.Left, s.Pace, s.SinceTrigger = 49, 200, 299 }, "", "", ""},
		"a large burst":        {func(s *Situation) { s.Left, s.Pace = 250, 2000 }, "", "", ""},
		"and less left":        {func(s *Situation) { s.Left, s.Pace = 249, 2000 }, "", "proactive", ""},
		"a burst is over":      {func(s *Situation) { s.Left, s.Pace = 14, 40 }, "", "", "proactive"},
		"instances alone":      {func(s *Situation) { s.Left, s.Direct, s.Forecast.Next = 55, false, 200 }, "", "proactive", ""},
		"and enough":           {func(s *Situation) { s.Left, s.Direct, s.Forecast.Next = 56, false, 200 }, "", "", ""},
		"and half of a bin":    {func(s *Situation) { s.Left, s.Direct = 15, false }, "", "", "proactive"},
		"untrained":            {func(s *Situation) { s.Left, s.Forecast = 14, predict.Forecast{} }, "", "proactive", ""},
		"untrained, enough":    {func(s *Situation) { s.Left, s.Forecast = 15, predict.Forecast{} }, "", "", ""},
		"a few":                {func(s *Situation) { s.Left, s.Rate, s.Pace = 3, 1, 1 }, "", "proactive", "proactive"},
		"a few of a few":       {func(s *Situation) { s.Left, s.Rate, s.Pace, s.Limit = 3, 1, 1, 100 }, "", "", "proactive"},
		"lent":                 {func(s *Situation) { s.Lent, s.SinceTrigger, s.Rate = 10, 2000, 0 }, "", "lent", ""},
		"little is lent":       {func(s *Situation) { s.Lent, s.SinceTrigger = 9, 2000 }, "", "", ""},
		"lent, and just tried": {func(s *Situation) { s.Lent, s.SinceTrigger = 10, 1999 }, "", "", ""},
		"nobody asks":          {func(s *Situation) { s.Left, s.Rate, s.Pace = 3, 0.05, 0 }, "", "", ""},
		"just tried":           {func(s *Situation) { s.Left, s.Pace, s.SinceTrigger = 3, 4, 999 }, "", "", ""},
		"others have it":       {func(s *Situation) { s.Left, s.Told, s.Elsewhere = 3, true, 250 }, "", "proactive", "proactive"},
		"others have little":   {func(s *Situation) { s.Left, s.Told, s.Elsewhere = 3, true, 249 }, "", "", "proactive"},
		"alone":                {func(s *Situation) { s.Left, s.Told, s.Limit = 1, true, 9 }, "", "", "proactive"},
		"a fifth of the grant": {func(s *Situation) { s.Left, s.LastGrant = 20, 100 }, "", "", "proactive"},
		"more than a fifth":    {func(s *Situation) { s.Left, s.LastGrant = 20, 99 }, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := calm(tc.change)
			for trigger, want := range map[string]string{
				"reactive": tc.reactive, "low-water": tc.lowWater, "paper": tc.paper,
			} {
				if got := triggers[trigger].Due(s); got != want {
					t.Errorf("%s: due for %q, want %q", trigger, got, want)
				}
				rate := s.Rate
				if s.Direct {
					rate = 0
				}
				enough := triggers[trigger].Enough(s.Pace, rate)
				if want == "proactive" && s.Left >= enough {
					t.Errorf("%s: due, with %d of %d that are enough", trigger, s.Left, enough)
				}
			}
		})
	}
}

// TestAhead: a site sees to others' lack if it is a fiftieth of the limit, not too often,
// and after its own need.
func TestAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Situation)
		want   string
	}{
		"nobody lacks any":  {func(s *Situation) { s.Lacking = 0 }, ""},
		"a fiftieth":        {func(*Situation) {}, "ahead"},
		"less":              {func(s *Situation) { s.Lacking = 99 }, ""},
		"a small limit":     {func(s *Situation) { s.Limit, s.Lacking = 10, 1 }, "ahead"},
		"not long ago":      {func(s *Situation) { s.SinceTrigger = 9999 }, ""},
		"own need is first": {func(s *Situation) { s.Left, s.Rate = 3, 20 }, "proactive"},
	} {
		s := Situation{Left: 900, Limit: 5000, Lacking: 100, SinceTrigger: 10_000}
		tc.change(&s)
		if got := (aheadTrigger{}).Due(s); got != tc.want {
			t.Errorf("%s: due for %q, want %q", name, got, tc.want)
		}
	}
}

func TestWants(t *testing.T) {
	forecast := predict.Forecast{Expected: 40, Median: 60, High: 90, Next: 30}
	for name, tc := range map[string]struct {
		s                       Situation
		quantile, median, paper avantan.Tokens
		waiting                 avantan.Tokens
	}{
		"a forecast":               {Situation{Left: 10, Forecast: forecast}, 90, 60, 40, 0},
		"a rate above the median":  {Situation{Left: 10, Rate: 70, Forecast: forecast}, 90, 70, 40, 0},
		"a rate above the want":    {Situation{Left: 10, Rate: 100, Forecast: forecast}, 100, 100, 40, 0},
		"without a majority":       {Situation{Left: 10, Rate: 10, NoQuorum: true, Forecast: forecast}, 11, 11, 40, 0},
		"and a loan":               {Situation{Left: 10, Rate: 10, NoQuorum: true, Own: 70, Forecast: forecast}, 70, 60, 40, 0},
		"waiting":                  {Situation{Left: 10, Queued: 9, First: 4, Forecast: forecast}, 90, 60, 10, 4},
		"waiting in debt":          {Situation{Left: -3, Queued: 9, First: 4}, 0, 0, 0, 4},
		"more released than taken": {Situation{Left: 10, Forecast: predict.Forecast{Expected: -5, Median: 1, High: 2}}, 2, 1, 0, 0},
		"beyond all numbers":       {Situation{Rate: 1e300}, input.MaxTokens, input.MaxTokens, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if target, median := (quantileWant{}).Target(tc.s); target != tc.quantile || median != tc.median {
				t.Errorf("quantile: %d, %d, want %d, %d", target, median, tc.quantile, tc.median)
			}
			if target, median := (paperWant{}).Target(tc.s); target != tc.paper || median != tc.paper {
				t.Errorf("paper: %d, %d, want %d", target, median, tc.paper)
			}
			if all, first := (quantileWant{}).Waiting(tc.s), (paperWant{}).Waiting(tc.s); all != tc.s.Queued || first != tc.waiting {
				t.Errorf("waiting: %d and %d, want %d and %d", all, first, tc.s.Queued, tc.waiting)
			}
		})
	}
}

// TestPaperWantIsEquations4And5: beyond its offer a site wants the tokens of its first
// waiting acquire, or its expected need beyond the tokens that it has.
func TestPaperWantIsEquations4And5(t *testing.T) {
	want, offerPolicy := paperWant{}, offerAll{}
	for name, tc := range map[string]struct {
		left, first avantan.Tokens
		expected    float64
		want        avantan.Tokens
	}{
		"equation 4":       {10, 0, 35, 25},
		"enough":           {50, 0, 35, 0},
		"equation 5":       {10, 12, 35, 12},
		"equation 5, none": {0, 12, 0, 12},
	} {
		t.Run(name, func(t *testing.T) {
			s := Situation{Left: tc.left, Queued: 2 * tc.first, First: tc.first, Forecast: predict.Forecast{Expected: tc.expected}}
			target, _ := want.Target(s)
			if got := max(0, want.Waiting(s)+target-offerPolicy.Offer(s, avantan.PressSpare)); got != tc.want {
				t.Errorf("wants %d beyond its offer, want %d", got, tc.want)
			}
		})
	}
}

// BenchmarkLowWater measures the trigger where nothing is due.
func BenchmarkLowWater(b *testing.B) {
	s := Situation{Left: 500, Rate: 80, Limit: 5000, SinceTrigger: 1000, Forecast: predict.Forecast{Next: 30}}
	b.ReportAllocs()
	for b.Loop() {
		if triggers["low-water"].Due(s) != "" {
			b.Fatal("due")
		}
	}
}
