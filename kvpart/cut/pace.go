package cut

import "context"

// slice is the work done between two looks at the context, in visited neighbours of some
// nanoseconds each.
const slice = 1 << 15

// pace counts work, so that others get the processor about every hundred microseconds and
// the end of a context is seen.
type pace struct {
	ctx   context.Context
	yield func()
	left  int
	err   error
}

// spend takes n steps of work and reports whether to go on. Once it has reported false it
// always does; half-done work is then thrown away.
func (p *pace) spend(n int) bool {
	p.left -= n
	if p.left > 0 {
		return true
	}
	return p.rest()
}

func (p *pace) rest() bool {
	if p.err == nil {
		p.err = p.ctx.Err()
	}
	if p.err != nil {
		return false
	}
	if p.yield != nil {
		p.yield()
	}
	p.left = slice
	return true
}
