package core

import (
	"strings"

	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// list answers with a page of entities, or with sums over them. A list with Look ends at the
// latest after so many entities, so that a search of all does not hold other requests up.
func (c *reading) list(l *input.List) {
	if l.Count < 1 {
		c.reply(l.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	var ans answer.Answer
	d := &answer.Details{}
	looked := 0
	c.visit(l, func(e *entity) bool {
		if l.After != "" && e.name <= l.After {
			return true
		}
		if !strings.HasPrefix(e.name, l.Prefix) {
			return e.name < l.Prefix
		}
		if len(d.Views) == l.Count || l.Look > 0 && looked == l.Look {
			ans.More = true
			return false
		}
		looked++
		d.After = e.name
		switch {
		case l.Sum:
			addUp(&d.Sum, e)
		case (!l.Top || e.parent() == nil) && name.Has(e.name, l.Contains):
			v := e.view()
			c.showRate(e, &v)
			d.Views = append(d.Views, v)
		}
		return true
	})
	ans.Details = d
	c.reply(l.Call, ans)
}

// visit visits the entities that a list may return, in the order of their names from the
// list's first on, until fn returns false.
func (c *reading) visit(l *input.List, fn func(e *entity) bool) {
	from := max(l.Prefix, l.After)
	if l.Parent == "" {
		c.space.ascend(from, fn)
		return
	}
	if parent := c.space.find(l.Parent); parent != nil {
		c.space.ascendBelow(parent, from, fn)
	}
}
