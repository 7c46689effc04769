package proc

import "syscall"

// attributes has the kernel kill the child when the thread that started it ends, and
// gives the child a process group of its own. The spawner keeps the thread alive as long
// as the parent.
func attributes(as *User) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.UID, Gid: as.GID}
	}
	return a
}
