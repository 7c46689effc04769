package predict

import "math"

// profile is the mean of each part of a period, over the last periods: for example of the
// hours of a day. A new period's mean weighs weight; in the first periods it weighs as
// much as each earlier period. It keeps two bytes a part: the upper half of a float32,
// which is exact to a quarter of a percent.
type profile struct {
	parts []uint16
	// each is the number of bins in a part.
	each       int
	weight     float64
	sum, count float64
}

// newProfile cuts a period into at most so many parts of whole bins.
func newProfile(period, most int, weight float64) profile {
	each := (period + most - 1) / most
	return profile{parts: make([]uint16, (period+each-1)/each), each: each, weight: weight}
}

// at returns the mean of a bin's part.
func (p *profile) at(bin int) float64 {
	return float64(math.Float32frombits(uint32(p.parts[bin/p.each%len(p.parts)]) << 16))
}

// observe takes in a bin, NaN if it is missing.
func (p *profile) observe(bin int, net float64) {
	if !math.IsNaN(net) {
		p.sum += net
		p.count++
	}
	if (bin+1)%p.each > 0 {
		return
	}
	if p.count > 0 {
		mean, rounds := p.at(bin), bin/(p.each*len(p.parts))
		mean += max(p.weight, 1/float64(rounds+1)) * (p.sum/p.count - mean)
		const half = 1 << 15 // rounds to the nearest
		p.parts[bin/p.each%len(p.parts)] = uint16((math.Float32bits(float32(mean)) + half) >> 16)
	}
	p.sum, p.count = 0, 0
}

func (p *profile) state(c *codec) {
	for i := range p.parts {
		c.half(&p.parts[i])
	}
	c.value(&p.sum)
	c.float(&p.count)
	c.failed = c.failed || math.IsNaN(p.sum) || p.count < 0
}
