package replay

import (
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// plentyPart is what part of the limit has to be free for tokens to be plenty.
const plentyPart = 20

// isPlenty tells whether tokens are plenty for the clients of a place, by what all
// servers that theirs reaches have made durable: a system has no excuse then for
// letting an acquire wait or for refusing it.
func (r *run) isPlenty(p virtual.Place) bool {
	var free int
	if k, ok := r.system.(virtual.Knower); ok {
		free = k.Free(p)
	} else {
		free = int(r.o.Limit) - r.system.Out()
	}
	return core.Tokens(free)*plentyPart >= r.o.Limit
}

// Plenty is what became of the acquires that arrived while a twentieth of the limit
// or more was free.
type Plenty struct {
	Requests int `json:"requests"`
	// Refused is the ledger of refusals: without faults no system need refuse any.
	Refused int `json:"refused"`
	// Latency is that of all of them, refused ones as well.
	Latency Latency `json:"latency_ms"`
}

// plenty sums up what it came to.
func (t *told) plenty() Plenty {
	var p Plenty
	var latency []time.Duration
	for i := range t.all {
		if a := &t.all[i]; a.plenty {
			latency = append(latency, a.latency)
			if a.outcome != virtual.Granted {
				p.Refused++
			}
		}
	}
	p.Requests, p.Latency = len(latency), latencyOf(latency)
	return p
}
