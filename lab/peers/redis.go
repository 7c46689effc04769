package peers

import (
	"context"
	"net"
	"path/filepath"

	"github.com/samya-db/samya/devcluster/proc"
)

const redisProgram = "redis-server"

// Redis starts a redis server that keeps nothing on disk, the fastest that it can be. It
// returns the server's address and process.
func Redis(ctx context.Context, programs *proc.Programs, dir string) (addr string, p *proc.Process, err error) {
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return "", nil, err
	}
	_, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return "", nil, err
	}
	p, err = programs.Start(proc.Program{
		Name: redisProgram, Log: filepath.Join(dir, "redis.log"),
		Argv: []string{redisProgram, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"},
	})
	if err != nil {
		return "", nil, err
	}
	return addrs[0], p, listens(ctx, p, addrs[0])
}
