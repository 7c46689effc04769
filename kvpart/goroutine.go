package kvpart

import (
	"bytes"
	"runtime"
	"strconv"
)

// numbered returns the number of the calling goroutine, from the head of its stack trace.
// That takes microseconds.
func numbered() uintptr {
	var buf [64]byte
	head := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(head, []byte(" "))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		panic("kvpart: a stack trace without the number of its goroutine: " + string(head))
	}
	return uintptr(n)
}
