package transports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

// Options are the options of a measurement.
type Options struct {
	// Self is a program that knows [ServeCommand].
	Self string
	// Callers are the numbers of callers in clear, Secure those over TLS 1.3.
	Callers, Secure []int
	Rounds          int
	Warmup, Time    time.Duration
	// Dir holds a directory for logs and a certificate; empty: that of temporary files.
	Dir string
	// Progress, if not nil, is called with messages of progress.
	Progress func(string)
}

// Default returns the options of a full measurement, but for Self.
func Default() Options {
	return Options{
		Callers: []int{1, 64, 1024}, Secure: []int{64},
		Rounds: 5, Warmup: 500 * time.Millisecond, Time: 2 * time.Second,
	}
}

// overTLS are the ways that are also measured over TLS.
var overTLS = []string{GRPC, Frames}

// group is a number of callers, and the servers that the callers ask in turn.
type group struct {
	callers int
	servers []*server
	rows    []*Row
}

// Run measures. It leaves no process and no file behind.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "samya-transports-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("find the directory for logs: %w", err)
	}
	programs := proc.NewPrograms()
	defer func() { err = errors.Join(err, programs.Stop(context.WithoutCancel(ctx), grace)) }()
	s, err := newStarter(o.Self, dir, programs)
	if err != nil {
		return nil, err
	}
	groups, err := s.groups(ctx, &o)
	if err != nil {
		return nil, err
	}
	r := &Report{Rounds: o.Rounds, Seconds: o.Time.Seconds(), Cores: runtime.GOMAXPROCS(0)}
	for round := range o.Rounds {
		for _, g := range groups {
			if err := g.round(ctx, &o, round); err != nil {
				return nil, err
			}
		}
	}
	for _, g := range groups {
		for _, row := range g.rows {
			r.Rows = append(r.Rows, *row)
		}
	}
	r.summarize()
	return r, nil
}

// groups starts all servers.
func (s *starter) groups(ctx context.Context, o *Options) ([]*group, error) {
	var groups []*group
	for _, secure := range []bool{false, true} {
		callers := o.Callers
		if secure {
			callers = o.Secure
		}
		if len(callers) == 0 {
			continue
		}
		var servers []*server
		for i := range ways {
			if secure && !slices.Contains(overTLS, ways[i].name) {
				continue
			}
			started, err := s.start(ctx, &ways[i], secure)
			if err != nil {
				return nil, err
			}
			servers = append(servers, started)
		}
		for _, n := range callers {
			g := &group{callers: n, servers: servers}
			for _, asked := range servers {
				g.rows = append(g.rows, &Row{Way: asked.way.name, TLS: secure, Callers: n})
			}
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// round measures all servers once. Each round begins with another server.
func (g *group) round(ctx context.Context, o *Options, round int) error {
	for i := range g.servers {
		at := (i + round) % len(g.servers)
		row := g.rows[at]
		s, err := g.servers[at].measure(ctx, g.callers, o.Warmup, o.Time)
		if err != nil {
			return fmt.Errorf("%s, %d callers: %w", row.name(), g.callers, err)
		}
		row.Samples = append(row.Samples, *s)
		o.Progress(fmt.Sprintf("round %d of %d, %s, %d callers: %.0f a second, p50 %.0f µs, server %.1f µs, client %.1f µs",
			round+1, o.Rounds, row.name(), g.callers, s.Rate, s.P50, s.ServerCPU, s.ClientCPU))
	}
	return nil
}
