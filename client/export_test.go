package client

// Targets returns how many targets the client has.
func (c *Client) Targets() int {
	c.choosing.Lock()
	defer c.choosing.Unlock()
	return len(c.targets)
}
