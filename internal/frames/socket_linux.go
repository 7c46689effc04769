//go:build linux && (amd64 || arm64) && !race

package frames

import (
	"syscall"
	"unsafe"
)

// receive reads from a socket into b, which is not empty, and does not wait. The scheduler
// does not see the call.
func receive(fd uintptr, b []byte) (int, syscall.Errno) {
	//nolint:gosec // the kernel keeps no pointer
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

// send writes b to a socket, as far as the socket takes it, and does not wait.
func send(fd uintptr, b []byte) (int, syscall.Errno) {
	//nolint:gosec // the kernel keeps no pointer
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}
