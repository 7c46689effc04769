package ratelimit

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// Charge is hits to take of a rule's entity.
type Charge struct {
	*rules.Match
	Hits int64
}

// Taken is the outcome of charges.
type Taken struct {
	// Lacking is the entity that lacked tokens; empty if all were taken.
	Lacking string
	// Left is the number of tokens left of Lacking, or of a single charge, at the site that
	// answered; -1 if unknown.
	Left int64
}

// Backend counts the hits of rules.
type Backend interface {
	// Take takes the hits of all charges, all or none.
	Take(ctx context.Context, charges []Charge) (Taken, error)
	// Left tells how many tokens a site near by has left for a rule; stale allows a figure
	// of a moment ago.
	Left(ctx context.Context, m *rules.Match, stale bool) (int64, error)
	// Drain takes all tokens left, at most the hits of the charge.
	Drain(ctx context.Context, c Charge) error
}

// unknown stands for a number of tokens that is not known.
const unknown = -1

// decided is the decision about a descriptor.
type decided struct {
	// match is the rule; nil for none.
	match *rules.Match
	hits  int64
	// over: fewer tokens are left than hits.
	over bool
	// left is the number of tokens left, or unknown.
	left int64
}

// counted reports whether the rule of a descriptor counts.
func (d *decided) counted() bool { return d.match != nil && !d.match.Unlimited }

// refuses reports whether the status of a descriptor is over the limit.
func (d *decided) refuses() bool { return d.over && !d.match.Shadow }

// denies reports whether the descriptors decided so far refuse the request. Any limit
// refuses it by itself. Limits in quota mode do so together: while any of them has tokens
// left, they let the request pass.
func denies(all []decided) bool {
	quotas, spent := 0, 0
	for i := range all {
		d := &all[i]
		switch {
		case !d.counted():
		case !d.match.Quota && d.refuses():
			return true
		case d.match.Quota:
			quotas++
			if d.refuses() {
				spent++
			}
		}
	}
	return quotas > 0 && spent == quotas
}

// decide takes the hits of the descriptors, all or none: a request that it denies takes
// nothing. Hits beyond a limit that denies nothing, as it is in shadow or quota mode, are
// left out.
func (s *Service) decide(ctx context.Context, all []decided) (denied bool, err error) {
	open := make([]int, 0, len(all))
	for i := range all {
		switch d := &all[i]; {
		case !d.counted():
		case d.match.Limit == 0:
			d.over, d.left = true, 0
		case d.hits > d.match.Limit:
			d.over = true
		case d.hits == 0:
			if d.left, err = s.backend.Left(ctx, d.match, false); err != nil {
				return false, err
			}
			d.over = d.left == 0
		default:
			open = append(open, i)
		}
	}
	for len(open) > 0 && !denies(all) {
		rest, err := s.takeAll(ctx, all, open)
		if err != nil {
			return false, err
		}
		if len(rest) == len(open) {
			break
		}
		open = rest
	}
	s.drain(ctx, all)
	for i := range all {
		d := &all[i]
		if !d.counted() || d.left != unknown {
			continue
		}
		// Figures are a help. The decision stands without.
		if left, err := s.backend.Left(ctx, d.match, true); err == nil {
			d.left = left
		}
	}
	return denies(all), nil
}

// takeAll takes the hits of the open descriptors. If an entity lacks tokens, takeAll takes
// nothing, and returns the descriptors of the other entities.
func (s *Service) takeAll(ctx context.Context, all []decided, open []int) (rest []int, err error) {
	charges := make([]Charge, len(open))
	for n, i := range open {
		charges[n] = Charge{all[i].match, all[i].hits}
	}
	taken, err := s.backend.Take(ctx, charges)
	switch {
	case err != nil:
		return nil, err
	case taken.Lacking == "":
		if len(open) == 1 {
			all[open[0]].left = taken.Left
		}
		return open, nil
	}
	for _, i := range open {
		if d := &all[i]; d.match.Entity == taken.Lacking {
			d.over, d.left = true, taken.Left
		} else {
			rest = append(rest, i)
		}
	}
	if len(rest) == len(open) {
		return nil, apierr.Wrap(apierr.Internal, fmt.Errorf("%.256q lacks tokens, and was not asked for any", taken.Lacking))
	}
	return rest, nil
}

// drain uses up the rest of the limits that were exceeded, if the settings say so.
func (s *Service) drain(ctx context.Context, all []decided) {
	if !s.cfg.Drain {
		return
	}
	for i := range all {
		d := &all[i]
		if !d.counted() || !d.over || d.hits < 2 || d.left == 0 {
			continue
		}
		if s.backend.Drain(ctx, Charge{d.match, min(d.hits, d.match.Limit)}) == nil {
			d.left = 0
		}
	}
}
