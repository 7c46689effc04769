package shares_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samya-db/samya/internal/shares"
)

// of returns the share of a site with a limit of 100 in all.
func of(site string, left, net int64, tweak ...func(*shares.Share)) shares.Share {
	s := shares.Share{Site: site, Generation: 1, Limit: 100, Left: left, Net: net}
	for _, t := range tweak {
		t(&s)
	}
	return s
}

func round(n int) func(*shares.Share)      { return func(s *shares.Share) { s.Round = n } }
func offered(n int64) func(*shares.Share)  { return func(s *shares.Share) { s.Offered = n } }
func applied(n uint64) func(*shares.Share) { return func(s *shares.Share) { s.Applied = n } }
func pledged(s *shares.Share)              { s.Pledged = true }
func absent(s *shares.Share)               { *s = shares.Share{Site: s.Site, Round: s.Round, Absent: true} }

func generation(n uint64) func(*shares.Share) {
	return func(s *shares.Share) { s.Generation = n }
}

func limit(n, surplus int64) func(*shares.Share) {
	return func(s *shares.Share) { s.Limit, s.Surplus = n, surplus }
}

func writtenOff(n int64) func(*shares.Share) { return func(s *shares.Share) { s.WrittenOff = n } }

func owed(n int64) func(*shares.Share) { return func(s *shares.Share) { s.Owed = n } }

func sent(to string, seq uint64, tokens int64) func(*shares.Share) {
	return func(s *shares.Share) { s.Sent = append(s.Sent, shares.Transfer{Site: to, Seq: seq, Tokens: tokens}) }
}

func taken(from string, seq uint64) func(*shares.Share) {
	return func(s *shares.Share) { s.Received = append(s.Received, shares.Transfer{Site: from, Seq: seq}) }
}

// net moves tokens from those left to those out.
func net(n int64) func(*shares.Share) {
	return func(s *shares.Share) { s.Left, s.Net = s.Left-n, s.Net+n }
}

func handed(to string, seq uint64, open int64) func(*shares.Share) {
	return func(s *shares.Share) { s.Handed = append(s.Handed, shares.Transfer{Site: to, Seq: seq, Tokens: open}) }
}

func inherited(from string, seq uint64) func(*shares.Share) {
	return func(s *shares.Share) { s.Inherited = append(s.Inherited, shares.Transfer{Site: from, Seq: seq}) }
}

func star(leader string, counter uint64, applied bool) func(*shares.Share) {
	return func(s *shares.Share) {
		s.Stars = append(s.Stars, shares.Star{Leader: leader, Counter: counter, Applied: applied})
	}
}

// mergeCase has shares, and their sum.
type mergeCase struct {
	what   string
	shares []shares.Share
	again  []string
	// available, acquired, transit and debt are the sums.
	available, acquired, transit, debt int64
}

func TestMerge(t *testing.T) {
	for _, c := range []mergeCase{
		{"at rest", []shares.Share{of("a", 40, 10), of("b", 30, 20)}, nil, 70, 30, 0, 0},
		{"set aside", []shares.Share{of("a", 30, 10, offered(10)), of("b", 30, 20)}, nil, 60, 30, 10, 0},
		{
			"in debt", []shares.Share{of("a", -30, 80), of("b", 0, 60, offered(-10))}, nil, -30, 140, -10, 40,
		},
		{
			"what was released and never acquired is kept out of circulation",
			[]shares.Share{of("a", 90, -20, limit(100, 20)), of("b", 10, 0, limit(100, 20))},
			nil, 100, -20, 0, 0,
		},
		{
			"a transfer is under way",
			[]shares.Share{of("a", 40, 0, sent("b", 3, 10)), of("b", 50, 0, taken("a", 2))},
			nil, 90, 0, 10, 0,
		},
		{
			"a first transfer is under way",
			[]shares.Share{of("a", 40, 0, sent("b", 1, 10)), of("b", 50, 0)},
			nil, 90, 0, 10, 0,
		},
		{
			"a transfer is taken and not acknowledged: it is counted once",
			[]shares.Share{of("a", 40, 0, sent("b", 3, 10)), of("b", 60, 0, taken("a", 3))},
			nil, 100, 0, 0, 0,
		},
		{
			"the receiver has taken what the donor has not yet sent",
			[]shares.Share{of("a", 50, 0, sent("b", 2, 0)), of("b", 60, 0, taken("a", 3))},
			[]string{"a"},
			110, 0, -10, 0,
		},
		{
			"the donor knows that it was taken, the receiver did not then",
			[]shares.Share{of("a", 40, 0, sent("b", 3, 0)), of("b", 50, 0, taken("a", 2))},
			[]string{"b"},
			90, 0, 10, 0,
		},
		{
			"the donor has sent the next one",
			[]shares.Share{of("a", 30, 0, sent("b", 4, 10)), of("b", 50, 0, taken("a", 2))},
			[]string{"b"},
			80, 0, 20, 0,
		},
		{
			"a bequest is taken and acknowledged",
			[]shares.Share{of("a", 50, 0, handed("b", 1, 0)), of("b", 50, 0, net(20), inherited("a", 1))},
			nil, 80, 20, 0, 0,
		},
		{
			"both sites count the tokens out of a bequest",
			[]shares.Share{of("a", 50, 0, net(20), handed("b", 1, 1)), of("b", 50, 0, net(20), inherited("a", 1))},
			[]string{"a"},
			60, 40, 0, 0,
		},
		{
			"the leaver told before it opened the bequest, the heir after it took it",
			[]shares.Share{of("a", 50, 0, net(20)), of("b", 50, 0, net(20), inherited("a", 1))},
			[]string{"a"},
			60, 40, 0, 0,
		},
		{
			"the leaver told after it closed the bequest, the heir before it took it",
			[]shares.Share{of("a", 50, 0, handed("b", 2, 0)), of("b", 50, 0, inherited("a", 1))},
			[]string{"b"},
			100, 0, 0, 0,
		},
		{
			"one has not applied what a majority decided, its part is still aside",
			[]shares.Share{of("a", 45, 0, applied(2)), of("b", 40, 0, offered(10), pledged, applied(1), round(3))},
			[]string{"b"},
			85, 0, 15, 0,
		},
		{
			"one was asked before it could know of the instance",
			[]shares.Share{of("a", 50, 0, applied(2)), of("b", 50, 0, applied(1))},
			[]string{"b"},
			100, 0, 0, 0,
		},
		{
			"one has missed an instance that it has no part in",
			[]shares.Share{of("a", 50, 0, applied(2)), of("b", 50, 0, applied(1), round(1))},
			nil, 100, 0, 0, 0,
		},
		{
			"the limit is that of the last instance applied",
			[]shares.Share{of("a", 50, 0, applied(1)), of("b", 70, 0, applied(2), limit(120, 0))},
			[]string{"a"},
			120, 0, 0, 0,
		},
		{
			"a star instance is applied at its leader, not yet at the other",
			[]shares.Share{of("a", 55, 0, star("a", 7, true)), of("b", 40, 0, offered(10), star("a", 7, false))},
			[]string{"b"},
			95, 0, 5, 0,
		},
		{
			"a star instance that one site was asked too early to know of",
			[]shares.Share{of("a", 55, 0, star("a", 7, true)), of("b", 50, 0)},
			[]string{"b"},
			105, 0, -5, 0,
		},
		{
			"a star instance that one site has forgotten, or no part in",
			[]shares.Share{of("a", 55, 0, star("a", 7, true)), of("b", 45, 0, round(1))},
			nil, 100, 0, 0, 0,
		},
		{
			"a star instance under way",
			[]shares.Share{of("a", 50, 0, offered(5), star("a", 7, false)), of("b", 40, 0, offered(5), star("a", 7, false))},
			nil, 90, 0, 10, 0,
		},
		{
			"nobody remembers the move that one of them lacks",
			[]shares.Share{of("a", 55, 0), of("b", 50, 0)},
			[]string{"a", "b"},
			105, 0, -5, 0,
		},
		{
			"one has not heard of the entity, or of its deletion already",
			[]shares.Share{of("a", 50, 0), of("b", 0, 0, absent)},
			[]string{"a", "b"},
			50, 0, 50, 0,
		},
		{
			"tokens are missing, and nobody remembers where they went",
			[]shares.Share{of("a", 45, 0), of("b", 50, 0)},
			[]string{"a", "b"},
			95, 0, 5, 0,
		},
		{
			"one has not heard of the entity, and the sum of the others fits",
			[]shares.Share{of("a", 60, 40), of("b", 0, 0, absent)},
			[]string{"a", "b"},
			60, 40, 0, 0,
		},
		{
			"one still has an earlier entity of the name",
			[]shares.Share{of("a", 50, 0, generation(2)), of("b", 90, 10)},
			[]string{"b"},
			50, 0, 50, 0,
		},
	} {
		c.check(t)
	}
}

func (c mergeCase) check(t *testing.T) {
	t.Helper()
	cut := shares.Merge(c.shares)
	last := c.shares[slices.IndexFunc(c.shares, func(s shares.Share) bool { return s.Limit == cut.Limit })]
	want := shares.Cut{
		Sums: shares.Sums{
			Limit: last.Limit, Surplus: last.Surplus, WrittenOff: last.WrittenOff, Available: c.available, Acquired: c.acquired,
			InTransit: c.transit, Debt: c.debt,
		},
		Consistent: len(c.again) == 0, Again: c.again,
	}
	if d := cmp.Diff(want, cut); d != "" {
		t.Errorf("%s (-want +got):\n%s", c.what, d)
	}
}

// TestMergeOfDebts: tokens that the cluster owes are not available, and a share below
// zero is a debt whatever else is there.
func TestMergeOfDebts(t *testing.T) {
	for _, c := range []mergeCase{
		{
			"the limit fell below what is in circulation",
			[]shares.Share{of("a", 50, 0, limit(60, 0), owed(40)), of("b", 50, 0, limit(60, 0), owed(40))},
			nil, 60, 0, 0, 40,
		},
		{
			"a debt is set aside where tokens are left",
			[]shares.Share{of("a", 50, 0, offered(-10)), of("b", 60, 0)},
			nil, 110, 0, -10, 10,
		},
		{
			"a debt is left where tokens are set aside",
			[]shares.Share{of("a", -10, 20, offered(30)), of("b", 60, 0)},
			nil, 50, 20, 30, 10,
		},
	} {
		c.check(t)
	}
}

// TestMergeOfWrittenOff: tokens written off are part of the limit, and of no share.
func TestMergeOfWrittenOff(t *testing.T) {
	for _, c := range []mergeCase{
		{
			"a site was lost with its tokens",
			[]shares.Share{of("a", 40, 10, writtenOff(20)), of("b", 30, 0, writtenOff(20))},
			nil, 70, 10, 0, 0,
		},
		{
			"one has not heard that they are back",
			[]shares.Share{of("a", 60, 10, applied(2)), of("b", 30, 0, applied(1), writtenOff(20), round(1))},
			nil, 90, 10, 0, 0,
		},
		{
			"tokens of a lost site are counted as left",
			[]shares.Share{of("a", 60, 10, writtenOff(20)), of("b", 30, 0, writtenOff(20))},
			[]string{"a", "b"},
			90, 10, -20, 0,
		},
		{
			"fewer are in use than are out",
			[]shares.Share{of("a", 60, 20, writtenOff(-5)), of("b", 25, 0, writtenOff(-5))},
			nil, 85, 20, 0, 0,
		},
	} {
		c.check(t)
	}
}

// TestMergeOfSeveral: the choice of the share that the other shares are compared with.
func TestMergeOfSeveral(t *testing.T) {
	for _, c := range []mergeCase{
		{
			"one that lags was asked after the first of those that do not, ahead of the last",
			[]shares.Share{of("a", 40, 0, applied(2), round(2)), of("b", 30, 0, applied(2)), of("c", 30, 0, applied(1), round(1))},
			nil, 100, 0, 0, 0,
		},
		{
			"what a site tells of an earlier entity says nothing of who lags",
			[]shares.Share{
				of("a", 50, 0, generation(2), applied(2), round(1)), of("b", 90, 10, applied(2)),
				of("c", 50, 0, generation(2), applied(1), round(1)),
			},
			[]string{"b", "c"},
			100, 0, 0, 0,
		},
		{
			"an earlier entity of the name has applied more",
			[]shares.Share{of("a", 50, 0, generation(2)), of("b", 90, 10, applied(5))},
			[]string{"b"},
			50, 0, 50, 0,
		},
		{
			"an earlier entity of the name is told of first",
			[]shares.Share{of("b", 90, 10), of("a", 50, 0, generation(2))},
			[]string{"b"},
			50, 0, 50, 0,
		},
		{
			"instances of two leaders have the same number",
			[]shares.Share{of("a", 50, 0, star("a", 7, true)), of("b", 50, 0, star("b", 7, true))},
			[]string{"a", "b"},
			100, 0, 0, 0,
		},
		{
			"one of two instances of a leader is not told of",
			[]shares.Share{of("a", 50, 0, star("a", 7, true), star("a", 8, true)), of("b", 50, 0, star("a", 8, true))},
			[]string{"b"},
			100, 0, 0, 0,
		},
		{
			"an instance is applied behind one that is not",
			[]shares.Share{
				of("a", 50, 0, offered(5), star("a", 7, false), star("a", 8, true)),
				of("b", 35, 0, offered(10), star("a", 7, false), star("a", 8, false)),
			},
			[]string{"b"},
			85, 0, 15, 0,
		},
	} {
		c.check(t)
	}
}

func TestMergeOfNothing(t *testing.T) {
	for _, all := range [][]shares.Share{nil, {of("a", 0, 0, absent), of("b", 0, 0, absent)}} {
		if d := cmp.Diff(shares.Cut{}, shares.Merge(all)); d != "" {
			t.Error(d)
		}
	}
}
