package control

import "math"

// signal counts, over requests, the partitions that they ran on.
type signal struct {
	requests int64
	multi    int64 // requests on several partitions
	keys     int64
	load     []int64 // keys used, by partition
}

func newSignal(partitions int) signal { return signal{load: make([]int64, partitions)} }

func (s *signal) reset() {
	s.requests, s.multi, s.keys = 0, 0, 0
	clear(s.load)
}

func (s *signal) add(keys []looked) {
	first, multi := int32(unplaced), false
	for i := range keys {
		p := keys[i].partition
		if p < 0 || keys[i].gone {
			continue
		}
		s.load[p]++
		s.keys++
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
	balance, balanceNoise float64 // heaviest partition / mean
}

func (s *signal) outcome() outcome {
	o := outcome{balance: 1}
	if s.requests > 0 {
		n := float64(s.requests)
		o.multi = float64(s.multi) / n
		o.multiNoise = 3 * math.Sqrt(o.multi*(1-o.multi)/n)
	}
	if s.keys > 0 {
		most := int64(0)
		for _, l := range s.load {
			most = max(most, l)
		}
		o.balance = float64(most) * float64(len(s.load)) / float64(s.keys)
		o.balanceNoise = balanceNoise(len(s.load), s.keys)
	}
	return o
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
