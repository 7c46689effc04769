package core

// claims takes in what another site asks, or answers, about requests.
func (c *Core) claims(*Claims) {}
