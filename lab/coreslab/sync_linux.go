package coreslab

import (
	"os"
	"syscall"
)

// syncData makes a file's content durable, as package journal does.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
