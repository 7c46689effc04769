package core

func (c *Core) b() { f := c.c; f() }
