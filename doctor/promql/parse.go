package promql

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Expr is an expression.
type Expr struct {
	root node
}

// Parse reads an expression. The error names the part that this package does not know.
func Parse(expr string) (*Expr, error) {
	tokens, err := lex(expr)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	root, err := p.binary(0, 0)
	if err == nil && p.peek().kind != end {
		err = p.wrong("nothing more")
	}
	if err == nil && root.shape() == ranged {
		err = fmt.Errorf("expression: %s is a range, and no function takes it", expr)
	}
	if err != nil {
		return nil, err
	}
	return &Expr{root}, nil
}

// parser reads tokens.
type parser struct {
	tokens []token
	next   int
}

func (p *parser) peek() token { return p.tokens[p.next] }

// take takes the next token if that is the sign or word given.
func (p *parser) take(s string) bool {
	if t := p.peek(); (t.kind == sign || t.kind == word) && t.text == s {
		p.next++
		return true
	}
	return false
}

// need takes the next token, which has to be a sign.
func (p *parser) need(s string) error {
	if !p.take(s) {
		return p.wrong(strconv.Quote(s))
	}
	return nil
}

// wrong returns the error for another token than wanted.
func (p *parser) wrong(want string) error {
	t := p.peek()
	if t.kind == end {
		return fmt.Errorf("expression: it ends where %s has to stand", want)
	}
	return fmt.Errorf("expression: byte %d is %q where %s has to stand", t.at, t.text, want)
}

// deepest bounds the depth of an expression.
const deepest = 50

// levels are the operators, from the operators that bind least.
var levels = [][]string{{"or"}, {"==", "!=", "<=", "<", ">=", ">"}, {"+", "-"}, {"*", "/"}}

// binary reads operators of a level and above, with operands.
func (p *parser) binary(level, depth int) (node, error) {
	if depth > deepest {
		return nil, fmt.Errorf("expression: more than %d deep", deepest)
	}
	if level == len(levels) {
		return p.operand(depth + 1)
	}
	left, err := p.binary(level+1, depth+1)
	for err == nil {
		t := p.peek()
		if (t.kind != sign && t.kind != word) || !slices.Contains(levels[level], t.text) {
			return left, nil
		}
		p.next++
		b := &binary{op: t.text, left: left}
		if err = p.matching(b); err == nil {
			if b.right, err = p.binary(level+1, depth+1); err == nil {
				left, err = b, b.check()
			}
		}
	}
	return nil, err
}

// matching reads the part behind an operator: on (…) group_left ().
func (p *parser) matching(b *binary) (err error) {
	if !p.take("on") {
		return nil
	}
	b.on = true
	if b.labels, err = p.labels(); err != nil || !p.take("group_left") {
		return err
	}
	b.many = true
	more, err := p.labels()
	if err == nil && len(more) > 0 {
		err = fmt.Errorf("expression: group_left takes labels over, which is not known")
	}
	return err
}

// labels reads a list of labels in parentheses.
func (p *parser) labels() ([]string, error) {
	if err := p.need("("); err != nil {
		return nil, err
	}
	var all []string
	for !p.take(")") {
		t := p.peek()
		if t.kind != word {
			return nil, p.wrong("a label")
		}
		all = append(all, t.text)
		p.next++
		if !p.take(",") && p.peek().text != ")" {
			return nil, p.wrong(`"," or ")"`)
		}
	}
	return all, nil
}

// operand reads a number, a selector, a call, an aggregation or an expression in
// parentheses.
func (p *parser) operand(depth int) (node, error) {
	t := p.peek()
	switch {
	case t.kind == number:
		p.next++
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, fmt.Errorf("expression: %w", err)
		}
		return scalar(v), nil
	case p.take("("):
		inner, err := p.binary(0, depth+1)
		if err != nil {
			return nil, err
		}
		return inner, p.need(")")
	case t.kind == word && aggregations[t.text] != nil:
		p.next++
		return p.aggregation(t.text, depth)
	case t.kind == word && p.tokens[p.next+1].text == "(" && p.tokens[p.next+1].kind == sign:
		p.next++
		return p.call(t.text, depth)
	case t.kind == word && t.text != "or":
		p.next++
		return p.selector(t.text)
	}
	return nil, p.wrong("a number, a metric or a function")
}

// aggregation reads an aggregation behind its name.
func (p *parser) aggregation(name string, depth int) (_ node, err error) {
	a := &aggregation{name: name}
	if p.take("by") {
		if a.by, err = p.labels(); err != nil {
			return nil, err
		}
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	if a.of, err = p.binary(0, depth+1); err != nil {
		return nil, err
	}
	if a.of.shape() != vector {
		return nil, fmt.Errorf("expression: %s of no series", name)
	}
	return a, p.need(")")
}

// call reads the arguments of a function.
func (p *parser) call(name string, depth int) (node, error) {
	f, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("expression: the function %s is not known", name)
	}
	if err := p.need("("); err != nil {
		return nil, err
	}
	c := &call{name: name, function: f}
	for i, want := range f.takes {
		if i > 0 {
			if err := p.need(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.binary(0, depth+1)
		if err != nil {
			return nil, err
		}
		if arg.shape() != want {
			return nil, fmt.Errorf("expression: argument %d of %s is of the wrong kind", i+1, name)
		}
		c.args = append(c.args, arg)
	}
	return c, p.need(")")
}

// selector reads the part behind the name of a metric.
func (p *parser) selector(metric string) (node, error) {
	s := &selector{metric: metric}
	if p.take("{") {
		for !p.take("}") {
			m, err := p.matcher()
			if err != nil {
				return nil, err
			}
			s.matchers = append(s.matchers, m)
			if !p.take(",") && p.peek().text != "}" {
				return nil, p.wrong(`"," or "}"`)
			}
		}
	}
	if !p.take("[") {
		return s, nil
	}
	t := p.peek()
	if t.kind != span {
		return nil, p.wrong("a duration")
	}
	p.next++
	var err error
	if s.span, err = duration(t.text); err != nil {
		return nil, err
	}
	return s, p.need("]")
}

// matcher reads a condition on a label.
func (p *parser) matcher() (m matcher, err error) {
	t := p.peek()
	if t.kind != word {
		return m, p.wrong("a label")
	}
	m.label = t.text
	p.next++
	op := p.peek()
	if op.kind != sign || !slices.Contains([]string{"=", "!=", "=~", "!~"}, op.text) {
		return m, p.wrong("one of = != =~ !~")
	}
	p.next++
	m.not = op.text[0] == '!'
	value := p.peek()
	if value.kind != text {
		return m, p.wrong("a text")
	}
	p.next++
	if m.value, err = unquote(value.text); err != nil {
		return m, fmt.Errorf("expression: byte %d: %w", value.at, err)
	}
	if op.text[len(op.text)-1] == '~' {
		if m.pattern, err = regexp.Compile(`^(?s:` + m.value + `)$`); err != nil {
			return m, fmt.Errorf("expression: byte %d: %w", value.at, err)
		}
	}
	return m, nil
}

// units are the units of durations that time.ParseDuration does not know.
var units = map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// longest bounds a duration.
const longest = 366 * 24 * time.Hour

// duration reads a duration in a single unit.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if unit, ok := units[s[len(s)-1]]; ok {
		var n int64
		n, err = strconv.ParseInt(s[:len(s)-1], 10, 32)
		d = time.Duration(min(n, int64(longest/unit)+1)) * unit
	}
	if err != nil || d <= 0 || d > longest {
		return 0, fmt.Errorf("expression: the duration %s is not within 1ms and %s", s, longest)
	}
	return d, nil
}
