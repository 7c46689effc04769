//go:build linux && (amd64 || arm64) && race

package frames

import (
	"errors"
	"syscall"
)

// receive reads from a socket into b, which is not empty, and does not wait. The race
// detector sees the call.
func receive(fd uintptr, b []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), b)
	return n, number(err)
}

// send writes b to a socket, as far as the socket takes it, and does not wait.
func send(fd uintptr, b []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), b)
	return n, number(err)
}

// number returns the number of an error of a system call; 0 for none.
func number(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return syscall.EIO
	}
	return errno
}
