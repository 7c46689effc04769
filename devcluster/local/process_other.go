//go:build !linux

package local

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// began returns when a process began, in the words of ps, and whether it runs.
func began(pid int) (start string, running bool) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "", false
	}
	state, at, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	return strings.TrimSpace(at), ok && !strings.HasPrefix(state, "Z")
}

// bootID is empty: the start of a process includes the date.
func bootID() string { return "" }

// detached does nothing: not every system has sessions.
func detached() *syscall.SysProcAttr { return nil }
