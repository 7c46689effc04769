package core

import (
	"strings"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *reading) list(l *input.List) {
	if l.Count < 1 {
		c.reply(l.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	var ans answer.Answer
	var page []answer.View
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
		v := e.view()
		c.showRate(e, &v)
		page = append(page, v)
		return true
	})
	ans.Details = &answer.Details{Views: page}
	c.reply(l.Call, ans)
}
