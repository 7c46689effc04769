//go:build !linux

package proc

import "syscall"

// attributes does nothing: without the kernel's parent-death signal, the lifeline alone
// ends the children of a killed parent. Nor does a child run as another user.
func attributes(*User) *syscall.SysProcAttr { return nil }
