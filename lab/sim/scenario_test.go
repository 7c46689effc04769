package sim_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/sim"
)

// TestScenarios plays every scenario in every mode that it speaks of.
func TestScenarios(t *testing.T) {
	race.OneGoroutine(t)
	most := 3
	if testing.Short() {
		most = 1
	}
	for _, sc := range sim.Scenarios() {
		if len(sc.Modes()) == 0 {
			t.Errorf("%s speaks of no mode", sc.Name)
		}
		for _, mode := range sc.Modes() {
			t.Run(sc.Name+"/"+mode, func(t *testing.T) {
				r := sc.Play(mode, 1, min(most, max(1, sc.Seeds/2)))
				for _, problem := range r.Problems {
					t.Error(problem)
				}
				if len(r.Figures) == 0 {
					t.Error("nothing was measured")
				}
				t.Logf("expected: %s; happened: %s", r.Expected, r.Happened)
			})
		}
	}
}
