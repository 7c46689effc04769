package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *Core) readEntity(r *input.Read) {
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		if es[0] == nil {
			c.reply(r.Call, answer.Answer{Code: answer.NotFound})
			return
		}
		if r.Cut && c.changing(es[0], r.Call) {
			return
		}
		v := c.reading.read(es[0])
		c.showRate(es[0], &v)
		if r.Cut {
			v.Count = c.counted(es[0])
		}
		c.reply(r.Call, answer.Answer{Details: &answer.Details{View: v}})
	})
}
