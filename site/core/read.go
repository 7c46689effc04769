package core

func (c *reading) readEntity(r *Read) {
	c.space.Execute([]string{r.Entity}, func(es []*entity) {
		if es[0] == nil {
			c.reply(r.Call, Answer{Code: NotFound})
			return
		}
		c.reply(r.Call, Answer{Details: &Details{View: c.read(es[0])}})
	})
}
