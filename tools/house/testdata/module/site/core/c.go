package core

func (c *Core) c() { twice(c.a) }
