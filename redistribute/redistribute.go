// Package redistribute shares out the tokens that sites have pooled once they agree on
// the contribution of each: step 4.4 of Samya (Maiyya et al.). It knows only the decided
// list. A [Policy] is a pure function. So every site computes the same grants from the
// same list, in whatever order it holds the list, and needs no message.
//
// Every policy keeps the equation that the limit rests on:
//
//	Σ grants = Σ offers + Δ
//
// where Δ is the change of the limit decided along with the list. Rounding neither loses
// nor makes a token. A grant is negative only if the pool is: when a limit was lowered
// below the tokens out, the sites share a debt.
package redistribute

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// The names of the policies.
const (
	// Paper is Algorithm 2 of the paper, its misprints repaired.
	Paper = "paper"
	// Demand fills the demand of waiting requests first, then the expected demand, and
	// shares the surplus by expected demand.
	Demand = "demand"
	// EqualRisk fills the demand of waiting requests first, and shares out the rest so
	// that each site is equally likely to run short.
	EqualRisk = "equal-risk"
)

// Policy decides who gets how many tokens. A Policy has no state; several goroutines may
// use it.
type Policy interface {
	// Name is the name that ByName knows the policy by. It is part of the decided value,
	// so a name always stands for the same computation.
	Name() string
	// Grants returns a grant for each contribution, in the order of the contributions,
	// which it leaves alone. The grants add up to the offers plus delta. It fails if
	// that sum does not fit 64 bits, or if the contributions make no sense.
	Grants(cs []avantan.Contribution, delta avantan.Tokens) ([]avantan.Tokens, error)
}

var (
	// errOverflow says that the offers and the change of the limit do not add up to a
	// signed 64-bit number.
	errOverflow = errors.New("sum of tokens does not fit 64 bits")
	// errContribution says that a contribution is impossible: a negative want, more
	// queued than wanted, a site that contributes twice. It also says that the limit
	// changes and no site contributes.
	errContribution = errors.New("impossible contribution")
	// ErrUnknownPolicy says that no policy has the requested name.
	ErrUnknownPolicy = errors.New("unknown reallocation policy")
)

var policies = []Policy{demand{}, equalRisk{}, paper{}}

// ByName returns the policy of that name, or fails with ErrUnknownPolicy.
func ByName(name string) (Policy, error) {
	for _, p := range policies {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w %q, known are %q", ErrUnknownPolicy, name, Names())
}

// Names returns the names of all policies, sorted.
func Names() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name()
	}
	return names
}

// inSiteOrder checks the contributions. It returns their indices in the order of their
// sites, and the tokens to share out.
func inSiteOrder(cs []avantan.Contribution, delta avantan.Tokens) (order []int, pool int64, err error) {
	order = make([]int, len(cs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(cs[a].Site, cs[b].Site) })
	total := sum{}
	total.add(int64(delta))
	for k, i := range order {
		c := cs[i]
		switch {
		case k > 0 && cs[order[k-1]].Site == c.Site:
			return nil, 0, fmt.Errorf("%w: site %q contributes twice", errContribution, c.Site)
		case c.Wanted < 0:
			return nil, 0, fmt.Errorf("%w: site %q wants %d", errContribution, c.Site, c.Wanted)
		case c.Queued < 0 || c.Queued > c.Wanted:
			return nil, 0, fmt.Errorf("%w: site %q has %d queued and wants %d",
				errContribution, c.Site, c.Queued, c.Wanted)
		}
		total.add(int64(c.Offered))
	}
	pool, fits := total.int64()
	if !fits {
		return nil, 0, fmt.Errorf("add up %d offers: %w", len(cs), errOverflow)
	}
	if len(cs) == 0 && pool != 0 {
		return nil, 0, fmt.Errorf("%w: %d tokens and no site", errContribution, pool)
	}
	return order, pool, nil
}

// sum adds signed 64-bit numbers in 128 bits. Only the end result has to fit: whether it
// does must not depend on the order of the terms.
type sum struct {
	high int64
	low  uint64
}

func (s *sum) add(n int64) {
	low, carry := bits.Add64(s.low, uint64(n), 0)
	s.low = low
	s.high += n>>63 + int64(carry)
}

func (s *sum) int64() (n int64, fits bool) {
	n = int64(s.low)
	return n, s.high == n>>63
}

// magnitude returns |n|, also of the least integer.
func magnitude(n int64) uint64 {
	if n == math.MinInt64 {
		return 1 << 63
	}
	return uint64(max(n, -n))
}
