//go:build !linux

package proc

import "syscall"

// attributes asks for nothing: where the kernel offers no parent-death signal,
// the lifeline alone ends the children of a killed parent. Nor does a child
// become another user.
func attributes(*User) *syscall.SysProcAttr { return nil }
