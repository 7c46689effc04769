package core

import (
	"strings"
)

func (c *reading) list(l *List) {
	if l.Count < 1 {
		c.reply(l.Call, Answer{Code: Invalid})
		return
	}
	var ans Answer
	var page []View
	c.space.ascend(max(l.Prefix, l.After), func(e *entity) bool {
		if l.After != "" && e.name <= l.After {
			return true
		}
		if !strings.HasPrefix(e.name, l.Prefix) {
			return e.name < l.Prefix
		}
		if len(page) == l.Count {
			ans.More = true
			return false
		}
		page = append(page, e.view())
		return true
	})
	ans.Details = &Details{Views: page}
	c.reply(l.Call, ans)
}
