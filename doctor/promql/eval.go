package promql

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
)

// shape is the kind of value that a node has.
type shape uint8

const (
	single shape = iota
	vector
	ranged
)

// node is a part of an expression.
type node interface {
	shape() shape
	// eval returns the value; a single value is a point without labels.
	eval(h *History, now time.Time) ([]Point, error)
	// each calls f with the node's direct parts.
	each(f func(node))
}

// Eval returns the series of an expression at an instant, in a fixed order.
func (e *Expr) Eval(h *History, now time.Time) ([]Point, error) {
	points, err := e.root.eval(h, now)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Labels.Key(), b.Labels.Key()) })
	return points, nil
}

// Metrics returns the names of the metrics that an expression reads.
func (e *Expr) Metrics() []string {
	var all []string
	walk(e.root, func(n node) {
		if s, ok := n.(*selector); ok {
			all = append(all, s.metric)
		}
	})
	return all
}

// Range returns the longest range that an expression looks back; 0 for an expression
// about an instant.
func (e *Expr) Range() time.Duration {
	var longest time.Duration
	walk(e.root, func(n node) {
		if s, ok := n.(*selector); ok {
			longest = max(longest, s.span)
		}
	})
	return longest
}

// Bound returns the operator and number of an expression that compares series with a
// number, such as "> 0.05"; ok is false for other expressions.
func (e *Expr) Bound() (op string, bound float64, ok bool) {
	b, is := e.root.(*binary)
	if !is || compare[b.op] == nil || b.right.shape() != single {
		return "", 0, false
	}
	p, err := b.right.eval(NewHistory(0, 0), time.Time{})
	if err != nil || len(p) != 1 {
		return "", 0, false
	}
	return b.op, p[0].Value, true
}

func walk(n node, f func(node)) {
	f(n)
	n.each(func(part node) { walk(part, f) })
}

// scalar is a number.
type scalar float64

func (scalar) shape() shape    { return single }
func (scalar) each(func(node)) {}
func (s scalar) eval(*History, time.Time) ([]Point, error) {
	return []Point{{Value: float64(s)}}, nil
}

// matcher is a condition on a label.
type matcher struct {
	label, value string
	pattern      *regexp.Regexp
	not          bool
}

func (m *matcher) matches(l Labels) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(l[m.label]) != m.not
	}
	return (l[m.label] == m.value) != m.not
}

// selector are the series of a metric: at an instant, or with a span within a range.
type selector struct {
	metric   string
	matchers []matcher
	span     time.Duration
}

func (s *selector) shape() shape {
	if s.span > 0 {
		return ranged
	}
	return vector
}

func (*selector) each(func(node)) {}

// series returns the series that match.
func (s *selector) series(h *History) []*series {
	return slices.DeleteFunc(h.of(s.metric), func(one *series) bool {
		return slices.ContainsFunc(s.matchers, func(m matcher) bool { return !m.matches(one.labels) })
	})
}

func (s *selector) eval(h *History, now time.Time) ([]Point, error) {
	var out []Point
	for _, one := range s.series(h) {
		if v, ok := one.at(now, h.lookback); ok {
			out = append(out, Point{one.labels, v})
		}
	}
	return out, nil
}

// aggregation joins series.
type aggregation struct {
	name string
	by   []string
	of   node
}

// aggregations are the known aggregations: the value of a group from one or more
// values.
var aggregations = map[string]func(values []float64) float64{
	"count": func(v []float64) float64 { return float64(len(v)) },
	"max":   slices.Max[[]float64],
	"min":   slices.Min[[]float64],
	"sum": func(v []float64) float64 {
		all := 0.
		for _, x := range v {
			all += x
		}
		return all
	},
}

func (*aggregation) shape() shape        { return vector }
func (a *aggregation) each(f func(node)) { f(a.of) }

func (a *aggregation) eval(h *History, now time.Time) ([]Point, error) {
	points, err := a.of.eval(h, now)
	if err != nil {
		return nil, err
	}
	groups := make(map[string][]float64)
	var out []Point
	for _, p := range points {
		l := p.Labels.pick(a.by, false)
		key := l.Key()
		if groups[key] == nil {
			out = append(out, Point{Labels: l})
		}
		groups[key] = append(groups[key], p.Value)
	}
	for i := range out {
		out[i].Value = aggregations[a.name](groups[out[i].Labels.Key()])
	}
	return out, nil
}

// binary is an operator with operands.
type binary struct {
	op          string
	left, right node
	// on is set if the labels alone tell which points belong together, many if several
	// points of the left may belong to one of the right.
	on, many bool
	labels   []string
}

// compare and compute are the known operators besides or.
var (
	compare = map[string]func(a, b float64) bool{
		"==": func(a, b float64) bool { return a == b },
		"!=": func(a, b float64) bool { return a != b },
		"<":  func(a, b float64) bool { return a < b },
		"<=": func(a, b float64) bool { return a <= b },
		">":  func(a, b float64) bool { return a > b },
		">=": func(a, b float64) bool { return a >= b },
	}
	compute = map[string]func(a, b float64) float64{
		"+": func(a, b float64) float64 { return a + b },
		"-": func(a, b float64) float64 { return a - b },
		"*": func(a, b float64) float64 { return a * b },
		"/": func(a, b float64) float64 { return a / b },
	}
)

func (b *binary) shape() shape {
	if b.left.shape() == single && b.right.shape() == single {
		return single
	}
	return vector
}

func (b *binary) each(f func(node)) { f(b.left); f(b.right) }

// check refuses operands that the operator does not take.
func (b *binary) check() error {
	l, r := b.left.shape(), b.right.shape()
	switch {
	case l == ranged || r == ranged:
		return fmt.Errorf("expression: %s of a range", b.op)
	case (b.on || b.op == "or") && (l != vector || r != vector):
		return fmt.Errorf("expression: %s of a number, with what belongs to several series", b.op)
	case b.op == "or" && b.on:
		return fmt.Errorf("expression: or with on is not known")
	case compare[b.op] != nil && l == single && (r == single || b.op != "=="):
		// Prometheus keeps the value of the right, which reads the wrong way round.
		return fmt.Errorf("expression: a number stands left of %s", b.op)
	}
	return nil
}

func (b *binary) eval(h *History, now time.Time) ([]Point, error) {
	left, err := b.left.eval(h, now)
	if err != nil {
		return nil, err
	}
	right, err := b.right.eval(h, now)
	if err != nil {
		return nil, err
	}
	if b.op == "or" {
		known := make(map[string]bool)
		for _, p := range left {
			known[p.Labels.Key()] = true
		}
		for _, p := range right {
			if !known[p.Labels.Key()] {
				left = append(left, p)
			}
		}
		return left, nil
	}
	var out []Point
	add := func(l Labels, x, y float64) {
		if f := compute[b.op]; f != nil {
			out = append(out, Point{l, f(x, y)})
		} else if compare[b.op](x, y) {
			out = append(out, Point{l, x})
		}
	}
	switch {
	case b.right.shape() == single:
		for _, p := range left {
			add(p.Labels, p.Value, right[0].Value)
		}
		return out, nil
	case b.left.shape() == single:
		for _, p := range right {
			add(p.Labels, left[0].Value, p.Value)
		}
		return out, nil
	}
	return out, b.match(left, right, add)
}

// match calls add with the points that belong together.
func (b *binary) match(left, right []Point, add func(Labels, float64, float64)) error {
	group := func(p Point) Labels { return p.Labels.pick(b.labels, !b.on) }
	other := make(map[string]Point)
	for _, p := range right {
		key := group(p).Key()
		if _, twice := other[key]; twice {
			return fmt.Errorf("several series right of %s have the same labels %s", b.op, key)
		}
		other[key] = p
	}
	used := make(map[string]bool)
	for _, p := range left {
		l := group(p)
		key := l.Key()
		r, ok := other[key]
		switch {
		case !ok:
			continue
		case b.many:
			l = p.Labels
		case used[key]:
			return fmt.Errorf("several series left of %s have the same labels %s", b.op, key)
		}
		used[key] = true
		add(l, p.Value, r.Value)
	}
	return nil
}

// finite reports whether a number can be shown.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
