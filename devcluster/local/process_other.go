//go:build !linux

package local

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// began tells when a process began, as ps says it, and whether it runs.
func began(pid int) (start string, running bool) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "", false
	}
	state, at, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	return strings.TrimSpace(at), ok && !strings.HasPrefix(state, "Z")
}

// bootID is empty: the start tells the day as well.
func bootID() string { return "" }

// detached asks for nothing: not every system has sessions.
func detached() *syscall.SysProcAttr { return nil }
