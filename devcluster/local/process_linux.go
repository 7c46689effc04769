package local

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// startField is the place of a process's start in /proc/PID/stat, counted from
// the state, which follows the name in brackets.
const startField = 19

// began tells when a process began, in ticks since the machine's start, and
// whether it runs. One that has ended and waits to be reaped does not.
func began(pid int) (start string, running bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The name may hold brackets and blanks itself.
	end := strings.LastIndexByte(string(b), ')')
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) <= startField || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[startField], true
}

// bootID names the present boot of the machine.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// detached takes a child out of the caller's session and process group, whose
// signals are not for it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
