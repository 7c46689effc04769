package proc

import "syscall"

// attributes has the kernel kill the child when the thread that started it
// ends (the caller sees to it that this thread lives as long as the parent),
// and gives the child a process group of its own.
func attributes(as *User) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.UID, Gid: as.GID}
	}
	return a
}
