package replay

import (
	"time"

	"github.com/samya-db/samya/lab/due"
	"github.com/samya-db/samya/site/core"
)

// Oracle is what one global counter without latency would have done: what it
// refuses no system can be blamed for. Only what it granted is released. It lets
// nobody wait, so a system that does may refuse less.
type Oracle struct {
	Granted  int `json:"granted"`
	Refused  int `json:"refused"`
	Releases int `json:"releases"`
}

// Oracle serves the demand from one counter.
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
