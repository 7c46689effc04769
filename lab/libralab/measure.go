package libralab

import (
	"math"

	"github.com/samya-db/samya/kvpart/libra"
)

// windows is the most measurements in the mean of a region. A change above jump begins a new
// mean.
const (
	mostWindows = 3
	jump        = .3
)

// noisy returns a measured number.
func (s *sim) noisy(v float64) float64 { return v * (1 + s.Noise*(2*s.rnd.Float64()-1)) }

// measure measures all nodes and regions, and reports whether loads are steady. The
// processor is measured at nodes, and shared out to regions by their requests.
func (s *sim) measure() (steady bool) {
	nodes, byNode := make([]libra.Load, s.Nodes), make([][]*region, s.Nodes)
	mean := 0.
	for _, r := range s.regions {
		nodes[r.node][libra.CPU] += r.load[libra.CPU]
		mean += r.load[libra.CPU] / float64(s.Nodes)
		byNode[r.node] = append(byNode[r.node], r)
	}
	for _, r := range s.regions {
		if r.to != nowhere {
			nodes[r.node][libra.CPU] += moveCPU * mean
			nodes[r.to][libra.CPU] += moveCPU * mean
		}
	}
	var shares []float64
	for j, regions := range byNode {
		nodes[j][libra.CPU] = s.noisy(nodes[j][libra.CPU])
		s.reads, s.writes = s.reads[:0], s.writes[:0]
		for _, r := range regions {
			s.reads, s.writes = append(s.reads, s.noisy(r.flow.reads)), append(s.writes, s.noisy(r.flow.writes))
		}
		shares = libra.MapCPU(shares[:0], nodes[j][libra.CPU], s.reads, s.writes, libra.WriteCost)
		for i, r := range regions {
			bytes := s.noisy(r.flow.bytes)
			nodes[j][libra.Disk] += bytes
			r.see(s.now, libra.Load{libra.CPU: shares[i], libra.Disk: bytes})
		}
	}
	return s.guard.Steady(nodes)
}

// see takes a measurement of a region. A region has none before it is a heartbeat old.
func (r *region) see(now int, load libra.Load) {
	if now-r.born < heartbeat {
		return
	}
	for _, d := range libra.Dimensions() {
		if math.Abs(load[d]-r.seen[d]) > jump*r.seen[d] {
			r.windows = 0
		}
	}
	r.windows = min(r.windows+1, mostWindows)
	for _, d := range libra.Dimensions() {
		r.seen[d] += (load[d] - r.seen[d]) / float64(r.windows)
	}
}
