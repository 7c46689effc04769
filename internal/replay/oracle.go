package replay

import "github.com/samya-db/samya/site/core"

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
	var releases eventQueue
	release := func(to int64) {
		for len(releases) > 0 && int64(releases[0].at) <= to {
			releases.pop()
			o.Releases++
		}
	}
	for i, l := range d.Leases {
		release(int64(l.Due))
		if core.Tokens(o.Granted-o.Releases) >= limit {
			o.Refused++
			continue
		}
		o.Granted++
		releases.push(event{at: l.Due + l.Hold, seq: uint64(i)})
	}
	release(int64(d.Span) - 1)
	return o
}
