package coreslab

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pin binds this process, and all processes that it starts, to the first cores of its set of
// cores. The returned function gives the whole set back.
func pin(cores int) (func() error, error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("ask for the cores of this process: %w", err)
	}
	if n := may.Count(); n < cores {
		return nil, fmt.Errorf("%w: %d cores, of %d", ErrOptions, cores, n)
	}
	var first unix.CPUSet
	for i := 0; first.Count() < cores; i++ {
		if may.IsSet(i) {
			first.Set(i)
		}
	}
	before := runtime.GOMAXPROCS(cores)
	undo := func() error {
		runtime.GOMAXPROCS(before)
		return setThreads(&may)
	}
	return undo, setThreads(&first)
}

// setThreads sets the cores of all threads. A thread that has ended meanwhile is none.
func setThreads(to *unix.CPUSet) error {
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range all {
		id, err := strconv.Atoi(t.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, to)
		}
		if err != nil && err != unix.ESRCH { //nolint:errorlint // a number of the system
			return fmt.Errorf("set the cores of thread %s: %w", t.Name(), err)
		}
	}
	return nil
}

// tick is the unit of times in /proc/stat.
const tick = 10 * time.Millisecond

// busy is the time for which the first cores worked so far, for whomever.
func busy(cores int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the times of cores: %w", err)
	}
	var sum int64
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		if n, err := strconv.Atoi(f[0][3:]); err != nil || n >= cores {
			continue
		}
		// user, nice, system, idle, iowait, irq, softirq, steal
		for _, at := range []int{1, 2, 3, 6, 7, 8} {
			n, err := strconv.ParseInt(f[at], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the times of cores: %w", err)
			}
			sum += n
		}
	}
	return time.Duration(sum) * tick, nil
}
