package control

import (
	"math"
	"time"

	"github.com/samya-db/samya/kvpart/workload"
)

// diskCost maps bytes of values written to bytes of disk (metric mapping, Zhang et al.,
// section IV-A): the bytes that engines have written are known for a partition alone, and an engine
// writes whole pages, a log, and some bytes again. So a partition's measured bytes are
// shared out to its requests by the bytes of their values.
type diskCost struct {
	cost    []float64 // bytes of disk for a byte of a value, by partition
	values  []float64 // bytes of values since the last measurement, of all requests
	written []int64   // as of the last measurement
	next    []int64
	at      time.Duration // of the last measurement
	begun   bool
}

const (
	// diskEvery is the time between two measurements: files grow in steps.
	diskEvery = 500 * time.Millisecond
	// leastBytes is the least number of bytes of values worth a measurement.
	leastBytes = 1 << 12
	// diskSmooth is the weight of a new measurement.
	diskSmooth = .5
)

func newDiskCost(partitions int) diskCost {
	d := diskCost{cost: make([]float64, partitions), values: make([]float64, partitions)}
	for i := range d.cost {
		d.cost[i] = 1
	}
	return d
}

// charge turns the bytes of values of a request, which stands for weight requests, into
// bytes of disk.
func (d *diskCost) charge(keys []looked, load workload.Load, weight float64) workload.Load {
	if load[1] == 0 {
		return load
	}
	for i := range keys {
		if p := keys[i].partition; p >= 0 && !keys[i].gone {
			d.values[p] += weight * float64(load[1]) * float64(len(keys))
			load[1] = uint32(min(math.Round(float64(load[1])*d.cost[p]), math.MaxUint32))
			break
		}
	}
	return load
}

// measure learns the costs from time to time. It reports false while data is on its way.
func (d *diskCost) measure(now time.Duration, written func([]int64) ([]int64, bool)) (settled bool) {
	if written == nil {
		return true
	}
	if d.begun && now-d.at < diskEvery {
		return d.written != nil
	}
	d.at, d.begun = now, true
	if d.next, settled = written(d.next[:0]); !settled {
		d.written = nil
		clear(d.values)
		return false
	}
	if d.written != nil {
		for p, v := range d.values {
			if v < leastBytes {
				continue
			}
			// With an engine that does not count, bytes of values count.
			if cost := float64(d.next[p]-d.written[p]) / v; cost > 0 {
				d.cost[p] += diskSmooth * (cost - d.cost[p])
			}
		}
	}
	clear(d.values)
	d.written = append(d.written[:0], d.next...)
	return true
}
