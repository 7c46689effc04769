// Package peers starts the rate limiters that samya is measured beside: the service of
// envoyproxy/ratelimit, which counts in redis, a cable that makes redis far away, and Gubernator. It
// refuses to judge them: packages ratelab and rls do.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/wan"
)

// ErrNotInstalled says that a program is missing.
var ErrNotInstalled = errors.New("not installed")

// Installed fails if the service or redis is missing.
func Installed(ratelimit string) error {
	if _, err := exec.LookPath(redisProgram); err != nil {
		return fmt.Errorf("%s: %w (Debian has it in package redis-server)", redisProgram, ErrNotInstalled)
	}
	if _, err := exec.LookPath(ratelimit); err != nil {
		return fmt.Errorf("%s: %w (make bin/ratelimit builds it)", ratelimit, ErrNotInstalled)
	}
	return nil
}

// GubernatorInstalled fails if Gubernator is missing.
func GubernatorInstalled(bin string) error {
	if _, err := exec.LookPath(bin); err != nil {
		return fmt.Errorf("%s: %w (make bin/gubernator builds it)", bin, ErrNotInstalled)
	}
	return nil
}

// listens waits until a process accepts connections at an address.
func listens(ctx context.Context, p *proc.Process, addr string) error {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Died():
			return fmt.Errorf("%s has ended; its last lines:\n%s", p.Name, p.Tail(12))
		default:
		}
		if wan.Wait(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("wait for %s: %w", p.Name, errors.Join(err, context.Cause(ctx)))
		}
	}
}
