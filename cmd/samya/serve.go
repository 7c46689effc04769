package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/settings"
	"github.com/samya-db/samya/internal/tracing"
	"github.com/samya-db/samya/internal/tracing/otlp"
	"github.com/samya-db/samya/internal/wan"
)

// served holds the flags that processes of a cluster share.
type served struct {
	node.Config
	security            security
	matrix              string
	logFormat, logLevel string
	exitWithStdin       bool
	// service names the program in traces, and instance the process if its name does not.
	service, instance string
	traces            *otlp.Exporter
}

// flags defines the shared flags.
func (s *served) flags(f *pflag.FlagSet, grpc, http, gossip string) {
	f.StringVar(&s.Name, "name", "", "name of this process, unique in the cluster")
	f.StringVar(&s.Region, "region", "", "region it stands in (default: its name)")
	f.StringVar(&s.Cluster, "cluster", "samya", "name of the cluster")
	f.StringVar(&s.GRPC, "grpc", grpc, "address to serve gRPC on")
	settings.Former(f, "listen", "grpc")
	f.StringVar(&s.HTTP, "http", http, "address to serve HTTP on")
	f.StringVar(&s.Gossip.Bind, "gossip", gossip, "address for gossip between the cluster's processes")
	f.StringSliceVar(&s.Gossip.Join, "join", nil, "gossip addresses of some processes of the cluster, host:port,…")
	f.StringVar((*string)(&s.Preset), preset.Flag, string(preset.WAN), "how far apart the cluster's processes are: local (one machine), lan (one region) or wan; sets all timings that depend on it")
	settings.Former(f, "gossip-preset", preset.Flag)
	f.StringVar(&s.Gossip.KeyFile, "gossip-key-file", "", "file with the keys of gossip, a line each in base64: the first encrypts, all are accepted; looked at every 10s")
	f.BoolVar(&s.Insecure, "insecure", false, "listen beyond this machine without certificates, an access file or a key of gossip")
	f.IntVar(&s.MaxConns, "max-conns", node.DefaultMaxConns, "how many connections each listener has at most; further ones wait")
	s.security.flags(f)
	f.StringVar(&s.matrix, "latency", "none", "latency injected between regions: none, samya or a file of round trips")
	settings.Former(f, "wan", "latency")
	f.StringVar(&s.logFormat, "log-format", "text", "form of the log: text or json")
	f.StringVar(&s.logLevel, "log-level", "info", "least level that is logged: debug, info, warn or error")
	f.BoolVar(&s.exitWithStdin, "exit-with-stdin", false, "stop when standard input ends")
	must(f.MarkHidden("exit-with-stdin"))
}

// completions completes the values of the shared flags.
func (s *served) completions(cmd *cobra.Command) {
	for flag, values := range map[string][]string{
		preset.Flag:  {"local", "lan", "wan"},
		"latency":    {"none", "samya"},
		"log-format": {"text", "json"},
		"log-level":  {"debug", "info", "warn", "error"},
	} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault)))
	}
}

// logger makes the process's logger, which writes to w.
func (s *served) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.logLevel)); err != nil {
		return nil, &usageError{fmt.Errorf("log-level: %q, must be debug, info, warn or error", s.logLevel)}
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch s.logFormat {
	case "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return nil, &usageError{fmt.Errorf("log-format: %q, must be text or json", s.logFormat)}
	}
	return slog.New(tracing.Log(handler)).With(slog.String("name", s.Name)), nil
}

// complete fills in the settings that are more than the value of a flag. g holds the
// further settings for the guards; the caller closes the guards.
func (s *served) complete(p *program, g guardConfig) (*guards, error) {
	s.Region, s.Build = cmp.Or(s.Region, s.Name), build()
	var err error
	if s.Logger, err = s.logger(p.stderr); err != nil {
		return nil, err
	}
	if p.settled != nil {
		for _, w := range p.settled.Warnings {
			s.Logger.Warn("settings", slog.String("warning", w))
		}
	}
	if s.matrix != "" && s.matrix != "none" {
		m, err := wan.Open(s.matrix)
		if err != nil {
			return nil, &usageError{fmt.Errorf("latency: %w", err)}
		}
		s.Latency, s.Hold = m.OneWay, wan.Exactly
	}
	g.keyFile, g.judging, g.log = s.Gossip.KeyFile, p.judging, s.Logger
	guarded, err := s.security.open(g)
	if err != nil {
		return nil, err
	}
	s.TLS, s.Access, s.Restricted = guarded.tls, guarded.access, guarded.restricted
	if err := s.trace(p); err != nil {
		guarded.close()
		return nil, err
	}
	return guarded, nil
}

// trace starts the export of traces, if the environment asks for it.
func (s *served) trace(p *program) (err error) {
	if p.judging {
		return nil
	}
	s.traces, err = otlp.Start(context.Background(), otlp.Process{
		Service: s.service, Instance: cmp.Or(s.instance, s.Name), Cluster: s.Cluster, Version: s.Build.Version, Region: s.Region,
		Logger: s.Logger, Getenv: os.Getenv,
	})
	if err != nil {
		return &usageError{err}
	}
	s.Traces = s.traces.Traces
	return nil
}

// lastTraces bounds the time for the export of the last traces.
const lastTraces = 5 * time.Second

// stopTraces exports the last traces.
func (s *served) stopTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := s.traces.Stop(ctx); err != nil {
		s.Logger.WarnContext(ctx, "the last traces are lost", slog.Any("error", err))
	}
}

// lifeline returns a context that also ends with standard input if the flag
// --exit-with-stdin is set.
func (s *served) lifeline(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.exitWithStdin {
		go func() {
			// Any end of reading means that the process at the other end is gone.
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	return ctx, cancel
}

// serve runs a process of a cluster until it is told to stop, which is no error. The
// command reports wrong settings before.
func (p *program) serve(cmd *cobra.Command, s *served, run func(context.Context) error) error {
	if p.judging {
		return nil
	}
	ctx, cancel := s.lifeline(cmd.Context(), p.stdin)
	defer cancel()
	go func() {
		select {
		case <-p.hurry:
			// The user who sends a second signal does not want to wait.
			os.Exit(exitInterrupted)
		case <-ctx.Done():
		}
	}()
	go paceGarbage(ctx)
	err := run(ctx)
	s.stopTraces()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
