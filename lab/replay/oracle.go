package replay

import (
	"time"

	"github.com/samya-db/samya/lab/due"
	"github.com/samya-db/samya/site/core"
)

// Oracle is the result of a single global counter without latency: no system is to
// blame for its refusals. Releases counts the releases of its grants. It lets no
// request wait, so a system with waits may refuse less.
type Oracle struct {
	Granted  int `json:"granted"`
	Refused  int `json:"refused"`
	Releases int `json:"releases"`
}

// Oracle serves the demand from a single counter.
func (d *Demand) Oracle(limit core.Tokens) Oracle {
	var o Oracle
	var releases due.Queue[time.Duration, struct{}]
	release := func(to time.Duration) {
		for {
			if _, ok := releases.Pop(to); !ok {
				break
			}
			o.Releases++
		}
	}
	for _, l := range d.Leases {
		release(l.Due)
		if core.Tokens(o.Granted-o.Releases) >= limit {
			o.Refused++
			continue
		}
		o.Granted++
		releases.Push(l.Due+l.Hold, struct{}{})
	}
	release(d.Span - 1)
	return o
}
