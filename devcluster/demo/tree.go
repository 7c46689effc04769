package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samya-db/samya/internal/httpapi"
)

// String returns the size of the hierarchy.
func (p *plan) String() string {
	return fmt.Sprintf("%d %s, %d %s and %d %s", p.count(org), org, p.count(team), team, p.count(leaf), leaf)
}

// treeTable returns the lines of a hierarchy's table.
func (v *view) treeTable() []string {
	bold, plain := "\x1b[1m", "\x1b[0m"
	lines := []string{
		fmt.Sprintf("%ssamya demo%s  %s   %s elapsed, %s to go%s", bold, plain, v.plan, clock(v.elapsed), clock(v.remaining), v.phase),
		fmt.Sprintf("requests %s (%s/s)  granted %s  refused %s  redistributions %s",
			number(v.stats.Total.Requests), decimal(v.total.requests), number(v.stats.Total.Granted),
			number(v.stats.Total.Refused), number(v.redistributions)),
		v.kept() + v.trouble(),
		v.lacked(),
		"",
		fmt.Sprintf("%s%-9s%9s%10s%10s%9s  %s%s", bold, "entity", "limit", "acquired", "most out", "lacked", columns(leafNames(), 9), plain),
	}
	for i := range v.plan.nodes {
		if n := &v.plan.nodes[i]; n.level != leaf {
			lines = append(lines, v.row(i, n))
		}
	}
	return append(append(lines, ""), v.sites()...)
}

// columns lays texts out side by side.
func columns(texts []string, cells int) string {
	var b strings.Builder
	for _, t := range texts {
		fmt.Fprintf(&b, "%-*s ", cells, t)
	}
	return strings.TrimRight(b.String(), " ")
}

// row draws an organisation or a team.
func (v *view) row(i int, n *node) string {
	e := &v.rows[i]
	name := strings.Repeat("  ", int(n.level)) + n.base()
	text := fmt.Sprintf("%-9s%9s%10s%10s%9s  ", shorten(name, 9), number(n.limit), number(e.AcquiredBooks), number(e.MaxAcquired), number(e.Refused))
	if n.level == org {
		return text + gauge(e.AcquiredBooks, n.limit, 29)
	}
	var leaves []string
	for _, at := range v.plan.children(n.name) {
		leaf := &v.rows[at]
		leaves = append(leaves, gauge(leaf.AcquiredBooks, leaf.Limit, 9))
	}
	return text + strings.Join(leaves, " ")
}

// gauge draws how full an entity is.
func gauge(acquired, limit int64, cells int) string {
	full := int(min(max(float64(acquired)/float64(max(limit, 1)), 0), 1)*float64(cells) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// kept says, level by level, how many entities kept their limit so far.
func (v *view) kept() string {
	var kept [levels]int
	for i, n := range v.plan.nodes {
		if v.rows[i].MaxAcquired <= n.limit {
			kept[n.level]++
		}
	}
	var parts []string
	for l := range levels {
		parts = append(parts, fmt.Sprintf("%s %d of %d", l, kept[l], v.plan.count(l)))
	}
	return "limits kept: " + strings.Join(parts, ", ")
}

// lacked says at which level refused acquires found too few tokens.
func (v *view) lacked() string {
	var refused [levels]uint64
	for i, n := range v.plan.nodes {
		refused[n.level] += v.rows[i].Refused
	}
	var parts []string
	for l := range levels {
		parts = append(parts, fmt.Sprintf("%s %s", l, number(refused[l])))
	}
	return "refused for want of tokens of: " + strings.Join(parts, ", ")
}

// judgeEntities returns an error for each entity whose limit or books the cluster broke.
func (r *Result) judgeEntities(settled bool) error {
	var errs []error
	for i := range r.Entities {
		e := &r.Entities[i]
		if e.MaxAcquired > e.Limit {
			errs = append(errs, fmt.Errorf("%w: %d tokens of %s were out at once, its limit is %d", ErrLimitExceeded, e.MaxAcquired, e.Name, e.Limit))
		}
		if !settled {
			continue
		}
		if e.AcquiredLedger != e.AcquiredBooks {
			errs = append(errs, fmt.Errorf("%w: %d tokens of %s are out by the clients' ledger, %d by the sites' books", ErrBooksDiffer, e.AcquiredLedger, e.Name, e.AcquiredBooks))
		}
		errs = append(errs, r.judgeLevels(e))
	}
	return errors.Join(errs...)
}

// judgeLevels compares an entity's books with the books of its children, site by site.
// Clients acquire tokens of leaves only.
func (r *Result) judgeLevels(e *EntityResult) error {
	below := r.plan.children(e.Name)
	if len(below) == 0 {
		return nil
	}
	var errs []error
	for _, share := range e.shares {
		var sum int64
		for _, at := range below {
			shares := r.Entities[at].shares
			if k := slices.IndexFunc(shares, func(s httpapi.Share) bool { return s.Site == share.Site }); k >= 0 {
				sum += shares[k].Net
			}
		}
		if sum != share.Net {
			errs = append(errs, fmt.Errorf("%w: at %s %d tokens of %s are out, of what stands below it %d", ErrLevelsDiffer, share.Site, share.Net, e.Name, sum))
		}
	}
	return errors.Join(errs...)
}

// treeText lists the entities of a hierarchy.
func (r *Result) treeText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s%10s%10s%10s%10s%10s\n", "entity", "limit", "most out", "ledger", "books", "lacked")
	for i := range r.Entities {
		e, n := &r.Entities[i], &r.plan.nodes[i]
		fmt.Fprintf(&b, "%-16s%10s%10s%10s%10s%10s\n", strings.Repeat("  ", int(n.level))+n.base(), number(e.Limit),
			number(e.MaxAcquired), number(e.AcquiredLedger), number(e.AcquiredBooks), number(e.Refused))
	}
	b.WriteByte('\n')
	return b.String()
}
