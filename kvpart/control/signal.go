package control

import (
	"math"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/kvpart/workload"
)

// signal counts, over requests, the partitions that they ran on.
type signal struct {
	requests int64
	multi    int64 // requests on several partitions
	// loads are the loads of partitions in all, as the sampled requests tell: uses of keys
	// if there is one dimension.
	loads []libra.Load
	dims  int
	// squares are the sums of the squares of the loads of uses.
	squares libra.Load
}

func newSignal(partitions, dims int) signal {
	return signal{loads: make([]libra.Load, partitions), dims: dims}
}

func (s *signal) reset() {
	s.requests, s.multi, s.squares = 0, 0, libra.Load{}
	clear(s.loads)
}

// add counts a request that stands for weight requests.
func (s *signal) add(keys []looked, load workload.Load, weight float64) {
	first, multi := int32(unplaced), false
	for i := range keys {
		p := keys[i].partition
		if p < 0 || keys[i].gone {
			continue
		}
		for d := range s.dims {
			l := weight * float64(load[d])
			s.loads[p][d] += l
			s.squares[d] += l * l
		}
		multi = multi || first >= 0 && p != first
		first = p
	}
	if first >= 0 {
		s.requests++
	}
	if multi {
		s.multi++
	}
}

// outcome is how well a map did.
type outcome struct {
	multi, multiNoise     float64 // share of requests on several partitions
	balance, balanceNoise float64 // heaviest partition / mean, in the dimension that is surest to be off
	// even is how many uses of equal load tell as much as a request, in that dimension.
	even float64
}

func (s *signal) outcome() outcome {
	o := outcome{balance: 1}
	if s.requests > 0 {
		n := float64(s.requests)
		o.multi = float64(s.multi) / n
		o.multiNoise = 3 * math.Sqrt(o.multi*(1-o.multi)/n)
	}
	k := len(s.loads)
	for d := range s.dims {
		sum, most := 0., 0.
		for _, l := range s.loads {
			sum += l[d]
			most = max(most, l[d])
		}
		if sum == 0 {
			continue
		}
		b, noise := most*float64(k)/sum, balanceNoise(k, int64(s.uses(d)))
		if d == 0 || b-noise > o.balance-o.balanceNoise {
			o.balance, o.balanceNoise = b, noise
			o.even = s.uses(d) / float64(max(s.requests, 1))
		}
	}
	return o
}

// uses returns how many uses of equal load would leave as much to chance.
func (s *signal) uses(d int) float64 {
	sum := 0.
	for _, l := range s.loads {
		sum += l[d]
	}
	if s.squares[d] == 0 {
		return 0
	}
	return sum * sum / s.squares[d]
}

// balanceNoise is how far chance moves the balance of k equal parts that share n uses. It
// takes 4.5 deviations of a part, as the heaviest of k is looked at again and again.
func balanceNoise(k int, n int64) float64 {
	return 4.5 * math.Sqrt(float64(k-1)/float64(max(n, 1)))
}

// worse reports whether o is worse than before by more than chance.
func (o outcome) worse(before outcome) bool {
	return o.multi > before.multi+.02+o.multiNoise+before.multiNoise ||
		o.balance > before.balance+.05+o.balanceNoise+before.balanceNoise
}

// better reports whether o is better than before by the share gain, and not worse in the
// other respect.
func (o outcome) better(before outcome, gain float64) bool {
	return !o.worse(before) &&
		(o.multi < before.multi*(1-gain)-o.multiNoise || o.balance-1 < (before.balance-1)*(1-gain)-o.balanceNoise)
}
