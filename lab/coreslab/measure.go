package coreslab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/earlylab"
)

// Calibration says where and how long Calibrate measures.
type Calibration struct {
	// Dir is a directory on the disk to sync. Calibrate removes its files there.
	Dir string
	// Entities is the number of entities, asked for in proportion to n^-0.99.
	Entities int
	// Remembered is the number of ids in the table, Rounds how often each cost is measured.
	Remembered, Rounds int
	// Self is this program, which serves [transports.ServeCommand]: the other end of
	// messages. Empty: both ends are in this process, which makes messages cheaper.
	Self string
}

// Calibrate measures the costs of a site's steps on this machine, a step at a time, with the
// code of the product. Figures are medians over rounds; times of syncs are all kept. The
// error tells a failed step, or that two cores were never free at the same time.
func Calibrate(ctx context.Context, o Calibration) (*Costs, error) {
	if o.Entities < 1 || o.Remembered < batch1 || o.Rounds < 1 {
		return nil, fmt.Errorf("%w: %d entities, %d ids, %d rounds", ErrOptions, o.Entities, o.Remembered, o.Rounds)
	}
	early, err := earlylab.Calibrate(time.Now, o.Rounds)
	if err != nil {
		return nil, fmt.Errorf("measure goroutines: %w", err)
	}
	c := &Costs{
		Entities: o.Entities, Remembered: o.Remembered,
		Wake: early.Wake, Handover: early.Handover, Yield: early.Yield, Transfer: early.Transfer,
	}
	m := &meter{Calibration: o, taken: make(map[string][]float64)}
	err = errors.Join(m.disk(ctx, c), m.cores(ctx, c), m.messages(c), m.sockets(ctx, c))
	if err != nil {
		return nil, fmt.Errorf("measure the costs of a site: %w", err)
	}
	return c, nil
}

// meter gathers measurements by name, in nanoseconds.
type meter struct {
	Calibration
	taken map[string][]float64
}

// note adds a measurement of n things that took a time.
func (m *meter) note(name string, n int, took time.Duration) {
	m.taken[name] = append(m.taken[name], float64(took.Nanoseconds())/float64(n))
}

// median is the median of the measurements of a name.
func (m *meter) median(name string) float64 {
	all := slices.Sorted(slices.Values(m.taken[name]))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// zipf draws entities in proportion to n^-0.99.
type zipf struct{ sums []float64 }

func newZipf(n int) *zipf {
	z, sum := new(zipf), 0.
	for i := range n {
		sum += math.Pow(float64(i+1), -.99)
		z.sums = append(z.sums, sum)
	}
	return z
}

func (z *zipf) draw(rnd *rand.Rand) int {
	at, _ := slices.BinarySearch(z.sums, rnd.Float64()*z.sums[len(z.sums)-1])
	return min(at, len(z.sums)-1)
}
