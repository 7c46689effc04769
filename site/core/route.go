package core

import (
	"github.com/samya-db/samya/site/core/input"
)

// Servable reports whether a shard may serve a request of this kind at all.
func Servable(in input.Input) bool {
	switch in := in.(type) {
	case *input.Acquire:
		return !in.DryRun && in.Lease == nil && in.Simple()
	case *input.Release:
		return in.Lease == nil && in.Simple()
	case *input.AcquireAll:
		return len(in.Parts) <= maxServedParts && in.Simple()
	}
	return false
}

// Route appends to ms the machines that a shard needs for itself to serve a Servable
// request: the machines that the request charges, each once, without split ones. It
// reports whether all entities that the request names exist. It may be called at any
// time, and by many goroutines at once. Its result may be outdated when the request is
// served, which Serve checks.
func (c *serving) Route(in input.Input, ms []*Machine) ([]*Machine, bool) {
	switch in := in.(type) {
	case *input.Acquire:
		return c.space.find(in.Entity).route(ms)
	case *input.Release:
		return c.space.find(in.Entity).route(ms)
	case *input.AcquireAll:
		for i := range in.Parts {
			var ok bool
			if ms, ok = c.space.find(in.Parts[i].Entity).routeOnce(ms); !ok {
				return ms, false
			}
		}
		return ms, true
	}
	return ms, false
}

// maxServedParts bounds the parts of a request that a shard serves.
const maxServedParts = 32

// route appends the machine and its ancestors, at most MaxDepth, and some more while
// entities are moved.
func (e *entity) route(ms []*Machine) ([]*Machine, bool) {
	if e == nil {
		return ms, false
	}
	for n := 0; e != nil && n < 2*MaxDepth; n++ {
		if e.split() == nil {
			ms = append(ms, e)
		}
		e = e.parent()
	}
	return ms, true
}

// routeOnce is route, skipping machines already in ms.
func (e *entity) routeOnce(ms []*Machine) ([]*Machine, bool) {
	if e == nil {
		return ms, false
	}
next:
	for n := 0; e != nil && n < 2*MaxDepth; n++ {
		if e.split() == nil {
			for _, m := range ms {
				if m == e {
					break next
				}
			}
			ms = append(ms, e)
		}
		e = e.parent()
	}
	return ms, true
}
