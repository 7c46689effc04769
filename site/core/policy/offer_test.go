package policy

import (
	"math"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/site/core/input"
)

func TestOfferSpare(t *testing.T) {
	for name, tc := range map[string]struct {
		s     Situation
		press avantan.Press
		want  avantan.Tokens
	}{
		"nothing known":          {Situation{Left: 100}, avantan.PressSpare, 96},
		"little left":            {Situation{Left: 3}, avantan.PressSpare, 0},
		"a busy site":            {Situation{Left: 100, Rate: 40}, avantan.PressSpare, 66},
		"busier than it has":     {Situation{Left: 100, Rate: 400}, avantan.PressSpare, 0},
		"much expected":          {Situation{Left: 100, Forecast: predict.Forecast{High: 300, Next: 90}}, avantan.PressSpare, 50},
		"some expected":          {Situation{Left: 100, Forecast: predict.Forecast{High: 300, Next: 30}}, avantan.PressSpare, 70},
		"pressed":                {Situation{Left: 100, Rate: 40}, avantan.PressAll, 100},
		"debt":                   {Situation{Left: -7}, avantan.PressSpare, -7},
		"debt, pressed":          {Situation{Left: -7}, avantan.PressAll, -7},
		"none":                   {Situation{}, avantan.PressSpare, 0},
		"a rate beyond all sums": {Situation{Left: math.MaxInt64, Rate: math.MaxFloat64}, avantan.PressSpare, math.MaxInt64 - input.MaxTokens},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (offerSpare{}).Offer(tc.s, tc.press); got != tc.want {
				t.Errorf("offers %d, want %d", got, tc.want)
			}
			if got := (offerAll{}).Offer(tc.s, tc.press); got != tc.s.Left {
				t.Errorf("all: offers %d", got)
			}
		})
	}
}
