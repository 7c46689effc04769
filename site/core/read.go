package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *Core) readEntity(r *input.Read) {
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		key := ""
		if es[0] == nil {
			es[0], key = c.space.above(r.Entity)
		}
		if es[0] == nil {
			c.reply(r.Call, answer.Answer{Code: answer.NotFound})
			return
		}
		if r.Cut && c.changing(es[0], r.Call) {
			return
		}
		v := c.reading.read(es[0])
		if c.showRate(es[0], &v); key != "" {
			c.keying.showKey(es[0], r.Entity, key, &v)
		}
		if r.Cut {
			v.Count = c.counted(es[0])
		}
		c.reply(r.Call, answer.Answer{Details: &answer.Details{View: v}})
	})
}
