package redistribute_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/redistribute"
)

const most = math.MaxInt64

// site is a contribution in short: of site "a", "b", … in the order given.
type site struct{ offered, wanted, queued avantan.Tokens }

// risk is a site with a median.
type risk struct{ offered, wanted, median, queued avantan.Tokens }

func contributions(sites []site) []avantan.Contribution {
	cs := make([]avantan.Contribution, len(sites))
	for i, s := range sites {
		cs[i] = avantan.Contribution{
			Site: avantan.SiteID(rune('a' + i)), Offered: s.offered, Wanted: s.wanted, Queued: s.queued,
		}
	}
	return cs
}

func withMedians(sites []risk) []avantan.Contribution {
	cs := make([]avantan.Contribution, len(sites))
	for i, s := range sites {
		cs[i] = avantan.Contribution{
			Site: avantan.SiteID(rune('a' + i)), Offered: s.offered, Wanted: s.wanted, Median: s.median, Queued: s.queued,
		}
	}
	return cs
}

func TestEqualRisk(t *testing.T) {
	type tokens = []avantan.Tokens
	for _, tc := range []struct {
		name  string
		sites []risk
		delta avantan.Tokens
		want  tokens
	}{
		{"between median and quantile", []risk{{60, 60, 20, 0}, {0, 40, 20, 0}}, 0, tokens{33, 27}},
		{"exactly the medians", []risk{{40, 60, 20, 0}, {0, 40, 20, 0}}, 0, tokens{20, 20}},
		{"exactly the quantiles", []risk{{100, 60, 20, 0}, {0, 40, 20, 0}}, 0, tokens{60, 40}},
		{"beyond the quantiles", []risk{{130, 60, 20, 0}, {0, 40, 20, 0}}, 0, tokens{80, 50}},
		{"scarce: in proportion to the medians", []risk{{30, 90, 40, 0}, {0, 500, 20, 0}}, 0, tokens{20, 10}},
		{"queued before medians", []risk{{10, 90, 40, 0}, {0, 9, 9, 9}}, 0, tokens{1, 9}},
		{"smallest queue first", []risk{{0, 9, 9, 9}, {10, 2, 2, 2}, {0, 5, 5, 5}}, 0, tokens{3, 2, 5}},
		{"scarce beyond the queues", []risk{{20, 50, 12, 2}, {0, 50, 34, 4}}, 0, tokens{6, 14}},
		{"a median below the queue is the queue", []risk{{20, 30, -5, 10}, {0, 10, 0, 0}}, 0, tokens{17, 3}},
		{"a median above the want is the want", []risk{{20, 10, most, 0}, {0, 15, 5, 0}}, 0, tokens{10, 10}},
		{"nobody has a spread: by want", []risk{{90, 10, 10, 0}, {0, 20, 20, 0}}, 0, tokens{30, 60}},
		{"nobody wants anything: equally", []risk{{0, 0, 0, 0}, {5, 0, 0, 0}, {0, 0, 0, 0}}, 0, tokens{2, 2, 1}},
		{"ties of remainders in site order", []risk{{1, 5, 0, 0}, {0, 5, 0, 0}}, 0, tokens{1, 0}},
		{"limit raised", []risk{{1, 3, 1, 0}, {1, 3, 1, 0}}, 8, tokens{5, 5}},
		{"pays a debt", []risk{{-5, 3, 1, 0}, {11, 3, 1, 0}}, 0, tokens{3, 3}},
		{"a debt does not wander", []risk{{4, 9, 9, 9}, {-10, 0, 0, 0}, {-20, 0, 0, 0}}, 0, tokens{0, -9, -17}},
		{"a lowering beyond the debts", []risk{{0, 0, 0, 0}, {-4, 5, 2, 0}, {1, 0, 0, 0}}, -8, tokens{-3, -6, -2}},
		{"sum of spreads overflows", []risk{{10, most, 1, 0}, {0, most, 1, 0}, {0, most, 1, 0}}, 0, tokens{4, 3, 3}},
		{"sum of medians overflows", []risk{{9, most, most, 0}, {0, most, most, 0}, {0, most, most, 0}}, 0, tokens{3, 3, 3}},
		{"all to the one with a spread", []risk{{most, 0, 0, 0}, {0, 1, 0, 0}}, 0, tokens{0, most}},
		{"alone", []risk{{7, 9, 3, 1}}, 1, tokens{8}},
		{"nobody", nil, 0, tokens{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy, err := redistribute.ByName(redistribute.EqualRisk)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Grants(withMedians(tc.sites), tc.delta)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	for _, tc := range []struct {
		name   string
		policy string
		sites  []site
		delta  avantan.Tokens
		want   []avantan.Tokens
	}{
		// The example of the misprint: 14 out of 10.
		{"paper rejects the smaller", "paper", []site{{5, 15, 0}, {5, 6, 0}}, 0, []avantan.Tokens{10, 0}},
		{"paper rejects none", "paper", []site{{10, 14, 0}, {10, 0, 0}}, 0, []avantan.Tokens{12, 8}},
		{"paper rejects all", "paper", []site{{5, 100, 0}, {5, 6, 0}}, 0, []avantan.Tokens{5, 5}},
		{"paper rejects ties in site order", "paper", []site{{0, 6, 0}, {0, 6, 0}, {10, 0, 0}}, 0, []avantan.Tokens{2, 7, 1}},
		{"paper loses the offer of who wants more", "paper", []site{{100, 150, 0}, {0, 0, 0}}, 0, []avantan.Tokens{75, 25}},
		{"paper remainder", "paper", []site{{2, 0, 0}, {3, 0, 0}, {0, 0, 0}}, 0, []avantan.Tokens{2, 2, 1}},
		{"paper remainder of a debt", "paper", []site{{0, 0, 0}, {-7, 0, 0}, {0, 3, 0}}, 0, []avantan.Tokens{-3, -2, -2}},
		{"paper limit raised", "paper", []site{{1, 1, 0}, {1, 1, 0}}, 8, []avantan.Tokens{5, 5}},
		{"paper want of 2^64-1", "paper", []site{{math.MinInt64, most, 0}, {most, 0, 0}}, 5, []avantan.Tokens{2, 2}},
		{"paper sum of wants overflows", "paper", []site{{0, most, 0}, {0, most, 0}, {most, 0, 0}}, 0, []avantan.Tokens{0, most, 0}},

		{"demand in full, surplus by want", "demand", []site{{50, 10, 0}, {50, 30, 0}}, 0, []avantan.Tokens{25, 75}},
		{"demand surplus equally", "demand", []site{{3, 0, 0}, {4, 0, 0}}, 0, []avantan.Tokens{4, 3}},
		{"demand keeps the offer of who wants more", "demand", []site{{100, 150, 0}, {0, 0, 0}}, 0, []avantan.Tokens{100, 0}},
		{"demand queued before expected", "demand", []site{{10, 10, 0}, {0, 8, 8}}, 0, []avantan.Tokens{2, 8}},
		{"demand smallest queue first", "demand", []site{{0, 9, 9}, {10, 2, 2}, {0, 5, 5}}, 0, []avantan.Tokens{3, 2, 5}},
		{"demand queues of equal size in site order", "demand", []site{{0, 4, 4}, {6, 4, 4}}, 0, []avantan.Tokens{4, 2}},
		{"demand scarce in proportion", "demand", []site{{7, 10, 0}, {0, 20, 0}, {0, 5, 5}}, 5, []avantan.Tokens{2, 5, 5}},
		{"demand ties of remainders in site order", "demand", []site{{1, 5, 0}, {0, 5, 0}}, 0, []avantan.Tokens{1, 0}},
		{"demand nothing to share", "demand", []site{{5, 5, 5}, {-5, 9, 0}}, 0, []avantan.Tokens{0, 0}},
		{"demand pays a debt", "demand", []site{{-5, 3, 0}, {11, 3, 0}}, 0, []avantan.Tokens{3, 3}},
		{"demand a debt does not wander", "demand", []site{{4, 9, 9}, {-10, 0, 0}, {-20, 0, 0}}, 0, []avantan.Tokens{0, -9, -17}},
		{"demand a lowering beyond the debts", "demand", []site{{0, 0, 0}, {-4, 5, 0}, {1, 0, 0}}, -8, []avantan.Tokens{-3, -6, -2}},
		{"demand the least integer", "demand", []site{{-most, 0, 0}, {0, 0, 0}}, -1, []avantan.Tokens{-most - 1, 0}},
		{"demand the largest integer", "demand", []site{{most, most, most}, {0, most, 0}, {0, most, 0}}, 0, []avantan.Tokens{most, 0, 0}},
		{"demand sum of wants overflows", "demand", []site{{9, most, 0}, {0, most, 0}, {0, most, 0}}, 0, []avantan.Tokens{3, 3, 3}},

		{"paper alone", "paper", []site{{7, 9, 1}}, 1, []avantan.Tokens{8}},
		{"demand alone", "demand", []site{{7, 9, 1}}, 1, []avantan.Tokens{8}},
		{"paper nobody", "paper", nil, 0, []avantan.Tokens{}},
		{"demand nobody", "demand", nil, 0, []avantan.Tokens{}},
		{"paper sum overflows on the way only", "paper", []site{{most, 0, 0}, {most, 0, 0}, {-most, 0, 0}}, 0, []avantan.Tokens{0, 0, most}},
		{"demand sum overflows on the way only", "demand", []site{{most, 0, 0}, {most, 1, 0}, {-most, 0, 0}}, 0, []avantan.Tokens{0, most, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy, err := redistribute.ByName(tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Grants(contributions(tc.sites), tc.delta)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrantsRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		cs    []avantan.Contribution
		delta avantan.Tokens
		want  error
	}{
		{"sum too large", contributions([]site{{most, 0, 0}, {1, 0, 0}}), 0, redistribute.ErrOverflow},
		{"sum with delta too large", contributions([]site{{most, 0, 0}}), 1, redistribute.ErrOverflow},
		{"sum too small", contributions([]site{{math.MinInt64, 0, 0}, {-1, 0, 0}}), 0, redistribute.ErrOverflow},
		{"negative want", contributions([]site{{0, -1, -1}}), 0, redistribute.ErrContribution},
		{"negative queue", contributions([]site{{0, 1, -1}}), 0, redistribute.ErrContribution},
		{"more queued than wanted", contributions([]site{{0, 1, 2}}), 0, redistribute.ErrContribution},
		{"a site twice", []avantan.Contribution{{Site: "a"}, {Site: "b"}, {Site: "a"}}, 0, redistribute.ErrContribution},
		{"a change and nobody", nil, 1, redistribute.ErrContribution},
	} {
		for _, name := range redistribute.Names() {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				policy, err := redistribute.ByName(name)
				if err != nil {
					t.Fatal(err)
				}
				got, err := policy.Grants(tc.cs, tc.delta)
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, %v, want error %v", got, err, tc.want)
				}
			})
		}
	}
}

func TestByName(t *testing.T) {
	names := redistribute.Names()
	if !slices.Equal(names, []string{redistribute.Demand, redistribute.EqualRisk, redistribute.Paper}) {
		t.Errorf("Names() = %q", names)
	}
	for _, name := range names {
		policy, err := redistribute.ByName(name)
		if err != nil || policy.Name() != name {
			t.Errorf("ByName(%q) = %v, %v", name, policy, err)
		}
	}
	if _, err := redistribute.ByName("nosuch"); !errors.Is(err, redistribute.ErrUnknownPolicy) {
		t.Errorf("ByName of an unknown name: %v", err)
	}
}

func ExamplePolicy() {
	policy, err := redistribute.ByName(redistribute.Demand)
	if err != nil {
		fmt.Println(err)
		return
	}
	grants, err := policy.Grants([]avantan.Contribution{
		{Site: "us", Offered: 10, Wanted: 400, Queued: 90},
		{Site: "eu", Offered: 300, Wanted: 100},
		{Site: "as", Offered: 190, Wanted: 0},
	}, 0)
	fmt.Println(grants, err)
	// Output: [400 100 0] <nil>
}

// The largest cluster anybody has asked for.
func BenchmarkGrants(b *testing.B) {
	sites := make([]site, 20)
	for i := range sites {
		sites[i] = site{avantan.Tokens(100 * i), avantan.Tokens(2000 - 77*i), avantan.Tokens(i)}
	}
	cs := contributions(sites)
	for i := range cs {
		cs[i].Median = cs[i].Wanted / 2
	}
	for _, name := range redistribute.Names() {
		policy, err := redistribute.ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Grants(cs, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
