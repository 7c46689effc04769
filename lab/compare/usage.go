package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is processor time so far.
type Usage struct {
	// Server is the time of the system's processes and their children, living or
	// ended. Client is the time of this process.
	Server, Client time.Duration
}

// clockTick is the unit of the times in /proc, the same on all of Linux.
const clockTick = 10 * time.Millisecond

// usage reads the processor time of this process and of a system's processes.
func usage(servers []int) (Usage, error) {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return Usage{}, fmt.Errorf("read the processor time of this process: %w", err)
	}
	u := Usage{Client: time.Duration(self.Utime.Nano() + self.Stime.Nano())}
	if len(servers) == 0 {
		return u, nil
	}
	var err error
	u.Server, err = treeTime("/proc", servers)
	return u, err
}

// stat is the data of interest in /proc/PID/stat.
type stat struct {
	parent int
	time   time.Duration
}

// treeTime sums the processor time of processes and all processes below.
func treeTime(proc string, roots []int) (time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	stats := make(map[int]stat, len(files))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended
		}
		if err != nil {
			return 0, fmt.Errorf("read a process's times: %w", err)
		}
		pid, s, err := parseStat(string(b))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		stats[pid] = s
	}
	wanted := make(map[int]bool, len(roots))
	for _, pid := range roots {
		if _, ok := stats[pid]; !ok {
			return 0, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
		}
		wanted[pid] = true
	}
	var sum time.Duration
	for pid, s := range stats {
		// Chains of parents are short and end at 0.
		for at := pid; at != 0; at = stats[at].parent {
			if wanted[at] {
				sum += s.time
				break
			}
		}
	}
	return sum, nil
}

var errStat = errors.New("not as proc(5) says")

// parseStat reads a line of /proc/PID/stat: the time of the process and of its
// ended children.
func parseStat(line string) (pid int, s stat, err error) {
	// The name is in brackets and may hold any character.
	head, rest, found := strings.Cut(line, " (")
	end := strings.LastIndexByte(rest, ')')
	if !found || end < 0 {
		return 0, stat{}, errStat
	}
	fields := strings.Fields(rest[end+1:])
	const ppid, utime, last = 1, 11, 14 // the state is field 0
	if len(fields) <= last {
		return 0, stat{}, errStat
	}
	if pid, err = strconv.Atoi(head); err != nil {
		return 0, stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	if s.parent, err = strconv.Atoi(fields[ppid]); err != nil {
		return 0, stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	for _, f := range fields[utime : last+1] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, stat{}, fmt.Errorf("%w: %w", errStat, err)
		}
		s.time += time.Duration(ticks) * clockTick
	}
	return pid, s, nil
}
