package local

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// startField is the index of a process's start in /proc/PID/stat, counted from the
// state, the field after the name in brackets.
const startField = 19

// began returns when a process began, in ticks since the machine's start, and whether it
// runs. A process that has ended and waits to be reaped does not run.
func began(pid int) (start string, running bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The name may hold brackets and blanks.
	end := strings.LastIndexByte(string(b), ')')
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) <= startField || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[startField], true
}

// bootID returns the id of the present boot; empty if the system does not tell.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// detached starts a child in its own session and process group, so that signals to the
// caller's group do not reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
