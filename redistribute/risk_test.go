package redistribute_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

func policyOf(tb testing.TB, name string) redistribute.Policy {
	tb.Helper()
	policy, err := redistribute.ByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}

// TestEqualRiskIsEqual: while there is enough for all medians nobody is below its own,
// and all stand at the same z between median and want, within rounding.
func TestEqualRiskIsEqual(t *testing.T) {
	policy := policyOf(t, redistribute.EqualRisk)
	rapid.Check(t, func(t *rapid.T) {
		cs := make([]avantan.Contribution, rapid.IntRange(1, 6).Draw(t, "sites"))
		var pool, medians, queued, spreads avantan.Tokens
		for i := range cs {
			want := avantan.Tokens(rapid.Int64Range(0, 100).Draw(t, "wanted"))
			median := avantan.Tokens(rapid.Int64Range(0, int64(want)).Draw(t, "median"))
			cs[i] = avantan.Contribution{
				Site:    avantan.SiteID("s" + strconv.Itoa(i)),
				Offered: avantan.Tokens(rapid.Int64Range(-20, 150).Draw(t, "offered")),
				Wanted:  want,
				Median:  median,
				Queued:  avantan.Tokens(rapid.Int64Range(0, int64(median)).Draw(t, "queued")),
			}
			pool += cs[i].Offered
			medians += median
			queued += cs[i].Queued
			spreads += want - median
		}
		grants, err := policy.Grants(cs, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grants {
			c := cs[i]
			if pool >= queued && g < c.Queued {
				t.Fatalf("%d of %d queued, from a pool of %d for queues of %d", g, c.Queued, pool, queued)
			}
			if pool < medians {
				continue
			}
			if g < c.Median {
				t.Fatalf("%d of a median of %d, from a pool of %d for medians of %d", g, c.Median, pool, medians)
			}
			// g-m is z(q-m) rounded up or down: both times the sum of spreads, to
			// compare integers.
			exact, got := (pool-medians)*(c.Wanted-c.Median), (g-c.Median)*spreads
			if spreads > 0 && (got <= exact-spreads || got >= exact+spreads) {
				t.Fatalf("%d above the median of %d, want %d/%d", g-c.Median, c.Median, exact, spreads)
			}
		}
	})
}

// moved is the number of tokens that change hands.
func moved(cs []avantan.Contribution, grants []avantan.Tokens) (tokens avantan.Tokens) {
	for i, g := range grants {
		tokens += max(0, g-cs[i].Offered)
	}
	return tokens
}

// afterRounds plays rounds of redistributions of total tokens among five sites with
// wandering needs. It returns the tokens moved, and the demand, drawn around the medians,
// that found no tokens at its site.
func afterRounds(tb testing.TB, name string, total, rounds int) (tokens, short avantan.Tokens) {
	tb.Helper()
	policy := policyOf(tb, name)
	r := rand.New(rand.NewPCG(1, 2))
	sites := make([]avantan.Contribution, 5)
	for i := range sites {
		sites[i] = avantan.Contribution{
			Site: avantan.SiteID("s" + strconv.Itoa(i)), Offered: avantan.Tokens(total / 5), Median: 100,
		}
	}
	for range rounds {
		for i := range sites {
			s := &sites[i]
			s.Median = min(max(s.Median+avantan.Tokens(r.IntN(61)-30), 10), 400)
			// The spread of a site is its own, and does not grow with its median.
			s.Wanted = s.Median + avantan.Tokens(20*(i+1)) + avantan.Tokens(r.IntN(20))
		}
		grants, err := policy.Grants(sites, 0)
		if err != nil {
			tb.Fatal(err)
		}
		tokens += moved(sites, grants)
		for i := range sites {
			s := &sites[i]
			s.Offered = grants[i]
			// Demand is normal, with Wanted as its 95 % quantile.
			need := float64(s.Median) + r.NormFloat64()*float64(s.Wanted-s.Median)/1.645
			short += max(0, avantan.Tokens(need)-s.Offered)
		}
	}
	return tokens, short
}

// TestEqualRiskRunsShortLess compares the policies on the same needs, from scarce to
// ample: equal-risk runs short least, and moves at most a third more tokens than demand.
func TestEqualRiskRunsShortLess(t *testing.T) {
	const rounds = 2000
	for _, total := range []int{500, 800, 1200, 1600} {
		tokens, short := make(map[string]avantan.Tokens), make(map[string]avantan.Tokens)
		for _, name := range redistribute.Names() {
			tokens[name], short[name] = afterRounds(t, name, total, rounds)
			t.Logf("of %d tokens, %-10s moves %3d a round, %6.2f short", total, name,
				tokens[name]/rounds, float64(short[name])/rounds)
		}
		for _, other := range []string{redistribute.Demand, redistribute.Paper} {
			if short[redistribute.EqualRisk] >= short[other] {
				t.Errorf("of %d tokens, equal-risk is %d short, %s %d", total, short[redistribute.EqualRisk], other, short[other])
			}
		}
		if 3*tokens[redistribute.EqualRisk] > 4*tokens[redistribute.Demand]+rounds {
			t.Errorf("of %d tokens, equal-risk moves %d, demand %d", total, tokens[redistribute.EqualRisk], tokens[redistribute.Demand])
		}
	}
}
