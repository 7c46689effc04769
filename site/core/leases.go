package core

// MaxTTL bounds the time to live of a lease, in milliseconds: 7 days.
const MaxTTL Tick = 7 * 24 * 60 * 60 * 1000

// leaseInput handles what is asked about leases.
func (c *Core) leaseInput(in Input) {
	switch in := in.(type) {
	case *RenewLease:
		c.reply(in.Call, Answer{Code: NoLease})
	case *CommitLease:
		c.reply(in.Call, Answer{Code: NoLease})
	case *ListLeases:
		c.reply(in.Call, Answer{})
	}
}
