package demo

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

// sampleTree is a view of a hierarchy in the middle of a demo. The tokens out of each
// leaf are as many as most clients want to hold.
func sampleTree() *view {
	v := sample()
	p := tree(5000)
	v.plan, v.rows, v.limit, v.redistributions = &p, results(&p), p.limit, 47
	return v
}

// results returns results of the plan's entities; us granted a fifth of the tokens out.
func results(p *plan) []EntityResult {
	rows := make([]EntityResult, len(p.nodes))
	at := make(map[string]*EntityResult)
	for i, n := range p.nodes {
		rows[i] = EntityResult{Name: n.name, Parent: n.parent, Limit: n.limit, Refused: uint64(i)}
		rows[i].shares = []httpapi.Share{{Site: "eu"}, {Site: "us"}}
		at[n.name] = &rows[i]
	}
	for _, e := range p.entities {
		out := min(int64(e.Share*4300), at[e.Name].Limit)
		for _, n := range append([]string{e.Name}, e.Above...) {
			if r := at[n]; r != nil {
				r.MaxAcquired += out
				r.AcquiredLedger += out
				r.AcquiredBooks += out
				r.shares[0].Net += out - out/5
				r.shares[1].Net += out / 5
			}
		}
	}
	return rows
}

func TestTreeTable(t *testing.T) {
	v := sampleTree()
	golden(t, "tree.txt", strings.Join(v.table(), "\n")+"\n"+v.line()+"\n")
	if rows := len(v.table()); rows >= 24 {
		t.Errorf("%d lines do not fit a terminal of 24", rows)
	}
	v.rows[0].MaxAcquired = v.rows[0].Limit + 1
	if got := v.kept(); !strings.Contains(got, "orgs 2 of 3") {
		t.Errorf("with an org above its limit: %s", got)
	}
}

func TestTreeTableFits(t *testing.T) {
	p := tree(1 << 52)
	large, empty := sampleTree(), sampleTree()
	empty.rows = make([]EntityResult, len(p.nodes))
	empty.stats, empty.read = load.Stats{}, httpapi.Status{}
	large.plan = &p
	for name, v := range map[string]*view{"usual": sampleTree(), "empty": empty, "large": large} {
		for _, line := range v.table() {
			if n := utf8.RuneCountInString(shown(line)); n > tableWidth && name != "large" {
				t.Errorf("%s: %d characters in %q", name, n, shown(line))
			}
			if n := utf8.RuneCountInString(shown(clip(line, tableWidth))); n > tableWidth {
				t.Errorf("%s: %d characters are left of %q", name, n, shown(line))
			}
		}
	}
}

// TestTreeHasATightestLevelEach: the first organisation wants more than its own limit,
// the second more than a team's, the third more than a leaf's. No other limit is in the
// way.
func TestTreeHasATightestLevelEach(t *testing.T) {
	p := tree(5000)
	if p.count(org) != 3 || p.count(team) != 6 || p.count(leaf) != 18 || len(p.entities) != 18 {
		t.Errorf("the tree has %s, %d of them loaded", &p, len(p.entities))
	}
	shares := make(map[string]float64)
	wanted := 0.0
	for _, e := range p.entities {
		shares[e.Name] = e.Share
		wanted += e.Share
	}
	var total float64
	for i := range Regions() {
		total += holdings(p.curve, time.Minute, i, len(Regions()))(7 * time.Second)
	}
	if math.Abs(total-wanted*5000) > 5 {
		t.Errorf("all regions together hold %.1f, wanted is %.1f", total, wanted*5000)
	}
	scarce := make(map[string]bool)
	// gets returns the tokens to be had below n: the tokens wanted, as far as limits
	// allow.
	var gets func(n *node) float64
	gets = func(n *node) float64 {
		if err := name.Entity("name", n.name); err != nil || n.limit < 1 {
			t.Errorf("entity %q of limit %d: %v", n.name, n.limit, err)
		}
		var sum float64
		for _, at := range p.children(n.name) {
			if p.nodes[at].level != n.level+1 {
				t.Errorf("%s stands below %s", p.nodes[at].name, n.name)
			}
			sum += gets(&p.nodes[at])
		}
		if n.level == leaf {
			sum = shares[n.name] * 5000
		}
		scarce[n.name] = sum > float64(n.limit)
		return min(sum, float64(n.limit))
	}
	for i := range p.nodes {
		if p.nodes[i].level == org {
			gets(&p.nodes[i])
		}
	}
	for n, is := range scarce {
		if want := n == "acme" || n == "globex/web" || n == "initech/web/prod"; is != want {
			t.Errorf("%s is scarce: %t, want %t", n, is, want)
		}
	}
}

func TestTreeIsJudged(t *testing.T) {
	tests := map[string]struct {
		spoil func(r *Result)
		want  error
	}{
		"sound":                      {func(*Result) {}, nil},
		"an org above its limit":     {func(r *Result) { r.Entities[0].MaxAcquired = 5001 }, ErrLimitExceeded},
		"a team above its limit":     {func(r *Result) { r.Entities[1].MaxAcquired = 3001 }, ErrLimitExceeded},
		"a leaf above its limit":     {func(r *Result) { r.Entities[26].MaxAcquired = 1501 }, ErrLimitExceeded},
		"a leaf's books":             {func(r *Result) { r.Entities[26].AcquiredBooks++ }, ErrBooksDiffer},
		"a team charged more":        {func(r *Result) { r.Entities[1].shares[1].Net++ }, ErrLevelsDiffer},
		"a team charged elsewhere":   {func(r *Result) { r.Entities[1].shares[1].Site = "sa" }, ErrLevelsDiffer},
		"the teams' not as the orgs": {func(r *Result) { r.Entities[0].shares[0].Net-- }, ErrLevelsDiffer},
	}
	for label, c := range tests {
		t.Run(label, func(t *testing.T) {
			p := tree(5000)
			r := &Result{plan: &p, Limit: p.limit, Entities: results(&p)}
			c.spoil(r)
			r.judge(true, 0)
			if !errors.Is(r.Verdict(), c.want) {
				t.Errorf("verdict %v, want %v", r.Verdict(), c.want)
			}
			if want := c.want == nil || errors.Is(c.want, ErrLimitExceeded); r.ConservationOK != want {
				t.Errorf("conservation %t, want %t", r.ConservationOK, want)
			}
		})
	}
}
