package failuretest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/samya-db/samya/site"
)

// cutsFlag names a directory to a site that this test program plays. While the directory
// has a file FROM-TO, messages from site FROM to site TO are lost.
const cutsFlag = "--cuts"

// playSite runs a site of the product in this process, as `samya site` does, with the
// transport's fault hook: the program itself has no flag for the hook.
func playSite(args []string) int {
	var cfg site.Config
	var members, join, cuts string
	var lifeline bool
	f := flag.NewFlagSet("site", flag.ContinueOnError)
	f.StringVar(&cfg.Name, "name", "", "")
	f.StringVar(&cfg.Region, "region", "", "")
	f.StringVar(&cfg.Cluster, "cluster", "", "")
	f.StringVar(&cfg.GRPC, "grpc", "", "")
	f.StringVar(&cfg.HTTP, "http", "", "")
	f.StringVar(&cfg.Gossip.Bind, "gossip", "", "")
	f.StringVar((*string)(&cfg.Preset), "preset", "", "")
	f.StringVar(&cfg.DataDir, "data", "", "")
	f.DurationVar(&cfg.RequestRetention, "request-retention", 0, "")
	f.Int64Var(&cfg.CheckpointBytes, "checkpoint-bytes", 0, "")
	f.DurationVar(&cfg.CheckpointInterval, "checkpoint-interval", 0, "")
	f.IntVar(&cfg.Partitions, "partitions", 0, "")
	f.StringVar(&members, "members", "", "")
	f.StringVar(&join, "join", "", "")
	f.StringVar(&cuts, strings.TrimPrefix(cutsFlag, "--"), "", "")
	f.String("latency", "", "")
	f.BoolVar(&lifeline, "exit-with-stdin", false, "")
	for _, m := range cfg.Modules() {
		f.StringVar(m.Choice, m.Name, "", "")
	}
	if err := f.Parse(args); err != nil {
		return 2
	}
	cfg.Members, cfg.Gossip.Join = strings.Split(members, ","), strings.Split(join, ",")
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg.Fault = func(to string) bool {
		_, err := os.Stat(cutFile(cuts, cfg.Name, to))
		return err == nil
	}
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if lifeline {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that counts
			stop()
		}()
	}
	if err := site.Run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// cutFile returns the path of the file that cuts the link from a site to another.
func cutFile(dir, from, to string) string { return filepath.Join(dir, from+"-"+to) }
