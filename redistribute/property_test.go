package redistribute_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

// anyTokens draws the numbers where arithmetic goes wrong as often as all
// others.
func anyTokens(least avantan.Tokens) *rapid.Generator[avantan.Tokens] {
	corners := []avantan.Tokens{0, 1, 2, most - 1, most, most / 2, most/2 + 1, 1 << 53}
	if least < 0 {
		corners = append(corners, -1, -2, -most, math.MinInt64, -most/2)
	}
	return rapid.OneOf(
		rapid.SampledFrom(corners),
		rapid.Custom(func(t *rapid.T) avantan.Tokens {
			return avantan.Tokens(rapid.Int64Range(max(int64(least), -50), 100).Draw(t, "small"))
		}),
		rapid.Custom(func(t *rapid.T) avantan.Tokens {
			return avantan.Tokens(rapid.Int64Range(int64(least), most).Draw(t, "any"))
		}),
	)
}

func drawContributions(t *rapid.T) []avantan.Contribution {
	cs := make([]avantan.Contribution, rapid.IntRange(0, 7).Draw(t, "sites"))
	for i := range cs {
		wanted := anyTokens(0).Draw(t, "wanted")
		cs[i] = avantan.Contribution{
			Site:    avantan.SiteID("s" + strconv.Itoa(i)),
			Offered: anyTokens(math.MinInt64).Draw(t, "offered"),
			Wanted:  wanted,
			Queued:  min(anyTokens(0).Draw(t, "queued"), wanted),
			Median:  anyTokens(math.MinInt64).Draw(t, "median"),
		}
	}
	return rapid.Permutation(cs).Draw(t, "order")
}

// checkPolicies holds every policy against the equation, its bounds, any other
// order of its input, and its oracle.
func checkPolicies(t *rapid.T) {
	cs := drawContributions(t)
	delta := anyTokens(math.MinInt64).Draw(t, "delta")
	pool := big.NewInt(int64(delta))
	for _, c := range cs {
		pool.Add(pool, big.NewInt(int64(c.Offered)))
	}
	shuffled := rapid.Permutation(cs).Draw(t, "other order")

	for _, name := range redistribute.Names() {
		oracle := oracles[name]
		if oracle == nil {
			t.Fatalf("policy %s has no oracle", name)
		}
		policy, err := redistribute.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(cs)
		grants, err := policy.Grants(cs, delta)
		if !slices.Equal(before, cs) {
			t.Fatalf("%s changed its input", name)
		}
		again, errAgain := policy.Grants(shuffled, delta)

		switch {
		case !pool.IsInt64():
			if !errors.Is(err, redistribute.ErrOverflow) || !errors.Is(errAgain, redistribute.ErrOverflow) {
				t.Fatalf("%s: a pool of %v: %v, %v", name, pool, err, errAgain)
			}
			continue
		case len(cs) == 0 && pool.Sign() != 0:
			if !errors.Is(err, redistribute.ErrContribution) {
				t.Fatalf("%s: nobody takes %v: %v", name, pool, err)
			}
			continue
		case err != nil || errAgain != nil:
			t.Fatalf("%s: %v, in another order %v", name, err, errAgain)
		}

		granted := new(big.Int)
		of := map[avantan.SiteID]avantan.Tokens{}
		for i, g := range grants {
			granted.Add(granted, big.NewInt(int64(g)))
			of[cs[i].Site] = g
			if pool.Sign() >= 0 && g < 0 || pool.Sign() < 0 && g > 0 {
				t.Fatalf("%s: a grant of %d out of %v", name, g, pool)
			}
		}
		if granted.Cmp(pool) != 0 {
			t.Fatalf("%s: granted %v out of %v", name, granted, pool)
		}
		for i, g := range again {
			if g != of[shuffled[i].Site] {
				t.Fatalf("%s: site %s gets %d, in another order %d", name, shuffled[i].Site, of[shuffled[i].Site], g)
			}
		}
		if diff := cmp.Diff(oracle(cs, pool), of); diff != "" {
			t.Fatalf("%s differs from its oracle (-oracle +policy):\n%s", name, diff)
		}
	}
}

func TestPolicies(t *testing.T) {
	// Each call draws 100 cases from a seed of its own. A sixth of the cases overflow, a
	// third share a debt, and the rest share out scarce and ample pools.
	for range 20 {
		rapid.Check(t, checkPolicies)
	}
}

func FuzzPolicies(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkPolicies)) }

// TestDemandServesWants: while there is enough for all, nobody gets less than
// it wants; while there is enough for the queues, nobody less than it queues.
func TestDemandServesWants(t *testing.T) {
	policy, err := redistribute.ByName(redistribute.Demand)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		cs := make([]avantan.Contribution, rapid.IntRange(1, 6).Draw(t, "sites"))
		var pool, wanted, queued avantan.Tokens
		for i := range cs {
			want := avantan.Tokens(rapid.Int64Range(0, 100).Draw(t, "wanted"))
			cs[i] = avantan.Contribution{
				Site:    avantan.SiteID("s" + strconv.Itoa(i)),
				Offered: avantan.Tokens(rapid.Int64Range(-20, 100).Draw(t, "offered")),
				Wanted:  want,
				Queued:  avantan.Tokens(rapid.Int64Range(0, int64(want)).Draw(t, "queued")),
			}
			pool += cs[i].Offered
			wanted += want
			queued += cs[i].Queued
		}
		grants, err := policy.Grants(cs, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grants {
			if pool >= wanted && g < cs[i].Wanted {
				t.Fatalf("%d of %d wanted, from a pool of %d for wants of %d", g, cs[i].Wanted, pool, wanted)
			}
			if pool >= queued && g < cs[i].Queued {
				t.Fatalf("%d of %d queued, from a pool of %d for queues of %d", g, cs[i].Queued, pool, queued)
			}
		}
	})
}
