package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

func (c *reading) readEntity(r *input.Read) {
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		if es[0] == nil {
			c.reply(r.Call, answer.Answer{Code: answer.NotFound})
			return
		}
		c.reply(r.Call, answer.Answer{Details: &answer.Details{View: c.read(es[0])}})
	})
}
