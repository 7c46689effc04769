package kvpart

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/workload"
)

// meter measures the cost of a sample of the requests: processor time, and bytes of values
// written where each partition has an engine on a disk.
type meter struct {
	control   *control.Controller[*entry]
	cpu, disk bool           // the loads to balance
	times     []atomic.Int64 // processor time of all requests by partition, estimated
}

// run runs an op, and measures it if it is of the sample.
func (m *meter) run(o *op, r *request) {
	t, ok := m.control.Pick()
	if !ok {
		o.run(r)
		return
	}
	runtime.LockOSThread()
	began := control.ThreadTime()
	defer func() { // also if the job panics or ends its goroutine
		cpu := control.ThreadTime() - began
		runtime.UnlockOSThread()
		m.count(r, time.Duration(float64(cpu)*t.Weight))
		keys := int64(len(r.Entries()))
		if keys == 0 {
			return
		}
		var load workload.Load
		if m.cpu {
			load[0] = clamp(int64(cpu) / keys)
		}
		if m.disk {
			load[1] = clamp(o.wrote() / keys)
		}
		m.control.Record(t, r.Entries(), load)
	}()
	o.run(r)
}

// count adds processor time to the partitions of a request.
func (m *meter) count(r *request, cpu time.Duration) {
	for _, p := range r.Partitions() {
		m.times[p].Add(int64(cpu) / int64(len(r.Partitions())))
	}
}

// spent returns the processor time of each partition's requests.
func (m *meter) spent() []time.Duration {
	all := make([]time.Duration, len(m.times))
	for i := range m.times {
		all[i] = time.Duration(m.times[i].Load())
	}
	return all
}

// disks reports whether the partitions of a store have disks of their own, as far as the
// file systems of its directories tell. On a single disk no move of keys changes the load
// of the disk. The maker of an Engine has thought of disks.
func (o *Options) disks() bool {
	if o.Engine != nil {
		return true
	}
	first, _ := device(o.Dirs[0])
	for _, dir := range o.Dirs[1:] {
		if d, ok := device(dir); !ok || d != first {
			return true
		}
	}
	return false
}

func clamp(v int64) uint32 { return uint32(max(0, min(v, 1<<32-1))) }

// wrote returns the bytes of keys and values that the op has written.
func (o *op) wrote() int64 {
	if o.err != nil {
		return 0
	}
	switch o.kind {
	case opWrite:
		return int64(len(o.value))
	case opExecute:
		n := 0
		for i := range o.tx.slots {
			if s := &o.tx.slots[i]; s.state == put {
				n += s.size
			}
		}
		return int64(n)
	case opDelete:
		return stampSize
	case opRead, opScan, opMove, opClear:
	}
	return 0
}
