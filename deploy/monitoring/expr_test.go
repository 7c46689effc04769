package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selector is a metric in an expression, with the conditions on its labels.
type selector struct {
	metric   string
	matchers []matcher
}

// matcher is a condition on a label.
type matcher struct{ label, op, value string }

// expression is the names in an expression.
type expression struct {
	selectors []selector
	// labels are the labels to group or match by.
	labels []string
}

var (
	token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-z.]*|=~|!~|!=|\S`)
	ident = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	// grouping has the words before a list of labels, joining the words between
	// expressions.
	grouping = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	joining  = []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
)

// read finds the names in an expression. It knows just enough of the language; promtool
// judges the rest.
func read(expr string) (expression, error) {
	var e expression
	tokens := token.FindAllString(expr, -1)
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		switch {
		case t == "[":
			end := slices.Index(tokens[i:], "]")
			if end < 0 {
				return e, fmt.Errorf("no ] in %s", expr)
			}
			i += end
		case !ident.MatchString(t) || slices.Contains(joining, t):
		case slices.Contains(grouping, t):
			if next != "(" {
				continue
			}
			end := slices.Index(tokens[i:], ")")
			if end < 0 {
				return e, fmt.Errorf("no ) in %s", expr)
			}
			for _, label := range tokens[i+2 : i+end] {
				if label != "," {
					e.labels = append(e.labels, label)
				}
			}
			i += end
		case next == "(", next == "by", next == "without": // a function or an aggregation
		default:
			s := selector{metric: t}
			if next == "{" {
				end := slices.Index(tokens[i:], "}")
				if end < 0 {
					return e, fmt.Errorf("no } in %s", expr)
				}
				inner := slices.DeleteFunc(slices.Clone(tokens[i+2:i+end]), func(s string) bool { return s == "," })
				for ; len(inner) >= 3; inner = inner[3:] {
					s.matchers = append(s.matchers, matcher{inner[0], inner[1], strings.Trim(inner[2], `"'`)})
				}
				if len(inner) > 0 {
					return e, fmt.Errorf("labels of %s in %s", t, expr)
				}
				i += end
			}
			e.selectors = append(e.selectors, s)
		}
	}
	if len(e.selectors) == 0 {
		return e, fmt.Errorf("no metric in %s", expr)
	}
	return e, nil
}

// values are the values that a matcher names, if it names any. A pattern is read if it
// has alternatives of plain words, in a single group at most.
func (m matcher) values() []string {
	if m.op == "=" || m.op == "!=" {
		return []string{m.value}
	}
	head, rest, grouped := strings.Cut(m.value, "(")
	inner, tail, closed := strings.Cut(rest, ")")
	if !grouped {
		head, inner, tail = "", m.value, ""
	} else if !closed {
		return nil
	}
	var all []string
	for word := range strings.SplitSeq(inner, "|") {
		all = append(all, head+word+tail)
	}
	return all
}
