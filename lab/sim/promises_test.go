package sim

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
)

func TestKeepsPromises(t *testing.T) {
	type tokens = []core.Tokens
	of := func(policy string, lists ...[3]core.Tokens) *avantan.Value {
		v := &avantan.Value{Policy: policy}
		for i, l := range lists {
			v.Contributions = append(v.Contributions, avantan.Contribution{
				Site: core.SiteID(rune('a' + i)), Offered: l[0], Wanted: l[1], Queued: l[2],
			})
		}
		return v
	}
	enough := of(redistribute.Demand, [3]core.Tokens{10, 4, 2}, [3]core.Tokens{0, 6, 6})
	scarce := of(redistribute.Demand, [3]core.Tokens{5, 9, 9}, [3]core.Tokens{0, 4, 4})
	risk := of(redistribute.EqualRisk, [3]core.Tokens{20, 10, 4}, [3]core.Tokens{0, 6, 0})
	risk.Contributions[1].Median = 2
	paper := of(redistribute.Paper, [3]core.Tokens{10, 0, 0}, [3]core.Tokens{0, 8, 8}, [3]core.Tokens{0, 5, 5})
	for name, c := range map[string]struct {
		v      *avantan.Value
		delta  core.Tokens
		grants tokens
		kept   bool
	}{
		"all wants fit":              {enough, 0, tokens{4, 6}, true},
		"a want is left out":         {enough, 0, tokens{5, 5}, false},
		"a negative grant":           {enough, 0, tokens{11, -1}, false},
		"the smaller queue first":    {scarce, 0, tokens{1, 4}, true},
		"the larger queue first":     {scarce, 0, tokens{5, 0}, false},
		"a debt is shared":           {enough, -12, tokens{-1, -1}, true},
		"a grant out of a debt":      {enough, -12, tokens{-3, 1}, false},
		"equal risk":                 {risk, -9, tokens{7, 4}, true},
		"equal risk beyond all":      {risk, 0, tokens{12, 8}, true},
		"one more than equal":        {risk, -9, tokens{8, 3}, false},
		"scarce, in proportion":      {risk, -15, tokens{4, 1}, true},
		"below a median":             {risk, -14, tokens{5, 1}, false},
		"paper: the largest want":    {paper, 0, tokens{1, 9, 0}, true},
		"paper: a smaller want only": {paper, 0, tokens{2, 2, 6}, false},
		"paper: nothing fits":        {paper, -6, tokens{2, 1, 1}, true},
	} {
		if err := keepsPromises(c.v, c.delta, c.grants); (err == nil) != c.kept {
			t.Errorf("%s: %v", name, err)
		}
	}
}
