package wan

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// idleTimers is the number of timers that are kept for later waits.
const idleTimers = 256

// timers are timers of the kernel that nobody waits for.
var timers = make(chan *os.File, idleTimers)

// Exactly waits for d by a timer of the kernel, or until the context ends; then it returns the
// context's error. A timer of the Go runtime may fire a millisecond late while the process is
// idle, as it waits for the network in whole milliseconds: too late for a latency within a
// region. Without a timer of the kernel it is Wait.
func Exactly(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := timer()
	if t == nil || !expires(ctx, t, d) {
		return Wait(ctx, d)
	}
	if err := ctx.Err(); err != nil {
		_ = t.Close() // its deadline is over
		return err
	}
	select {
	case timers <- t:
	default:
		_ = t.Close()
	}
	return nil
}

// timer returns a timer of the kernel that the runtime waits for as for a connection; nil if
// the kernel has none to give.
func timer() *os.File {
	select {
	case t := <-timers:
		return t
	default:
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "timer")
}

// expires waits until a timer that is set to d expires or the context ends. It reports false,
// and closes the timer, if the kernel refuses.
func expires(ctx context.Context, t *os.File, d time.Duration) bool {
	err := set(t, d)
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = t.SetReadDeadline(time.Unix(1, 0)) })()
		_, err = t.Read(make([]byte, 8))
	}
	if err != nil && ctx.Err() == nil {
		_ = t.Close()
		return false
	}
	return true
}

// set sets a timer.
func set(t *os.File, d time.Duration) error {
	conn, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil)
	})
	if err != nil {
		return err
	}
	return failed
}
