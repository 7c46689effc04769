package replay

import (
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// plentyPart is the inverse of the least free part of the limit for tokens to be
// plenty.
const plentyPart = 20

// isPlenty reports whether tokens are plenty for the clients of a place, by the
// durable books of all servers that the place's server reaches. Then a system has
// no excuse for a wait or a refusal.
func (r *run) isPlenty(p virtual.Place) bool {
	var free int
	if k, ok := r.system.(virtual.Knower); ok {
		free = k.Free(p)
	} else {
		free = int(r.o.Limit) - r.system.Out()
	}
	return core.Tokens(free)*plentyPart >= r.o.Limit
}

// Plenty is the outcome of the acquires that arrived while at least a twentieth of
// the limit was free.
type Plenty struct {
	Requests int `json:"requests"`
	// Refused counts refusals: without faults no system need refuse any.
	Refused int `json:"refused"`
	// Latency is the latency of all of them, refused acquires included.
	Latency Latency `json:"latency_ms"`
}

// plenty computes Plenty.
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
