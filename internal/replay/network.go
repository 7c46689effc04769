package replay

import (
	"math/rand/v2"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core"
)

const (
	// Of a way between sites, the mean of what is added to half the round trip:
	// a part of it, and a constant.
	jitterShare = .03
	jitter      = 200 * time.Microsecond
)

// network carries messages between sites. It loses none, and those of one link
// arrive in the order in which they left.
type network struct {
	r *rand.Rand
	// half are half the round trips, last when the last parcel arrives.
	half, last [len(regions)][len(regions)]time.Duration
	parcels    []parcel
	// free are the parcels that may be used again.
	free []int32
}

// parcel is what one batch of a site sends to another.
type parcel struct {
	from     core.SiteID
	messages []core.Envelope
}

func newNetwork(m *wan.Matrix, seed uint64) *network {
	n := &network{r: rand.New(rand.NewPCG(seed, 0x6e65))} //nolint:gosec // a simulation, to be repeated
	for i, a := range regions {
		for j, b := range regions {
			n.half[i][j] = m.OneWay(string(a), string(b))
		}
	}
	return n
}

// pack returns an empty parcel.
func (n *network) pack(from core.SiteID) int32 {
	if len(n.free) == 0 {
		n.parcels = append(n.parcels, parcel{from: from})
		return int32(len(n.parcels) - 1) //nolint:gosec // few are under way
	}
	p := n.free[len(n.free)-1]
	n.free = n.free[:len(n.free)-1]
	n.parcels[p].from = from
	return p
}

// unpack returns what a parcel holds, and frees it.
func (n *network) unpack(p int32) parcel {
	taken := n.parcels[p]
	n.parcels[p] = parcel{}
	n.free = append(n.free, p)
	return taken
}

// arrival draws when what leaves now arrives.
func (n *network) arrival(from, to int, now time.Duration) time.Duration {
	half := float64(n.half[from][to])
	way := half*(1+jitterShare*n.r.ExpFloat64()) + float64(jitter)*n.r.ExpFloat64()
	at := max(now+time.Duration(way), n.last[from][to])
	n.last[from][to] = at
	return at
}
