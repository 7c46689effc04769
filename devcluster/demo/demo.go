package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/httpapi"
)

// Bounds on the phases of a demo.
const (
	startTimeout  = 60 * time.Second
	createTimeout = 30 * time.Second
	settleTimeout = 30 * time.Second
	stopGrace     = 5 * time.Second
)

// Run runs the demo. It returns a result once the load is made and the books are read,
// even if a later step fails. It returns an error if the demo did not run to its end:
// ctx's cause, or a [*proc.DeathError] if a process died. The error does not say whether
// the cluster kept its promises; see [Result.Verdict]. Run leaves no process behind.
func Run(ctx context.Context, opts Options) (result *Result, err error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	dir, err := directory(opts.Dir)
	if err != nil {
		return nil, err
	}
	if opts.Dir == "" {
		defer func() {
			_, died := errors.AsType[*proc.DeathError](err)
			if opts.Keep || died || result != nil && result.Verdict() != nil {
				say(&opts, "data and logs are left in %s", dir)
				return
			}
			if rerr := os.RemoveAll(dir); rerr != nil {
				err = errors.Join(err, fmt.Errorf("remove the temporary directory: %w", rerr))
			}
		}()
	}

	hurry, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-opts.Hurry:
			cancel()
		case <-hurry.Done():
		}
	}()

	cluster, err := start(ctx, opts, dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		say(&opts, "stopping the cluster")
		err = errors.Join(err, cluster.Stop(hurry))
	}()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case death := <-cluster.Deaths():
			end(death)
		case <-ctx.Done():
		}
	}()

	var addrs []string
	for i := range Regions() {
		addrs = append(addrs, "http://"+cluster.AppManager(i).HTTP)
	}
	d := newDriver(&opts, nil, addrs)
	if opts.HA {
		d.failure = &failure{cluster: cluster}
	}
	result, err = d.drive(ctx)
	if err != nil {
		return nil, cause(ctx, err)
	}
	if err := publish(&opts, result); err != nil {
		return result, err
	}
	if !opts.Keep {
		return result, nil
	}
	say(&opts, "\n%s", kept(cluster, &opts, dir))
	<-ctx.Done()
	return result, cause(ctx, nil)
}

// cause returns the reason why ctx ended, or err if ctx has not ended.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// publish prints the result.
func publish(opts *Options, result *Result) error {
	if opts.JSON {
		say(opts, "\n%s", result.text())
		return result.writeJSON(opts.Stdout)
	}
	if _, err := fmt.Fprintf(opts.Stdout, "\n%s", result.text()); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// say prints a line of progress. It ignores errors: the demo goes on without a reader.
func say(opts *Options, format string, args ...any) {
	_, _ = fmt.Fprintf(opts.progress(), format+"\n", args...)
}

// directory makes the directory for data and logs: data, or a temporary directory if
// data is empty.
func directory(data string) (string, error) {
	if data == "" {
		dir, err := os.MkdirTemp("", "samya-demo-")
		if err != nil {
			return "", fmt.Errorf("make a temporary directory: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("data: %s is not empty; the demo starts from nothing", dir)
	}
	return dir, nil
}

// start starts the cluster and prints the name of each process as it becomes ready.
func start(ctx context.Context, opts Options, dir string) (*proc.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	nodes := 1
	if opts.HA {
		nodes = haNodes
		say(&opts, "starting etcd, %d sites of %d nodes and %d app managers; data and logs in %s", len(Regions()), nodes, len(Regions()), dir)
	} else {
		say(&opts, "starting %d sites and %d app managers; data and logs in %s", len(Regions()), len(Regions()), dir)
	}
	begun := time.Now()
	// Demand changes within seconds if a day lasts a minute.
	siteArgs := []string{"--forecast-bin", "1s"}
	if opts.Protocol != "" {
		siteArgs = append(siteArgs, "--protocol", opts.Protocol)
	}
	cluster, err := proc.Start(ctx, proc.Config{
		SiteArgs: siteArgs, Nodes: nodes,
		Bin: opts.Bin, Dir: dir, Cluster: "demo", Sites: Regions(), AppManagers: Regions(), Latency: "samya", Grace: stopGrace,
		Ready: func(name string) { say(&opts, "  %-6s ready after %s s", name, decimal(time.Since(begun).Seconds())) },
	})
	if err != nil {
		return nil, cause(ctx, err)
	}
	return cluster, nil
}

// kept prints the addresses of the cluster and commands to try.
func kept(cluster *proc.Cluster, opts *Options, dir string) string {
	p := opts.plan()
	name := p.entities[0].Name
	entity := "$SAMYA_ADDR/v1/entities/" + name
	var b strings.Builder
	fmt.Fprintf(&b, "The cluster stays up; Ctrl-C ends it. Data and logs stay in %s\n\nTry, in another shell:\n", dir)
	lines := []string{
		"export SAMYA_ADDR=http://" + cluster.AppManager(0).HTTP,
		"curl " + entity,
		"curl -d '{\"tokens\":3,\"wait\":\"2s\"}' " + entity + ":acquire",
		"curl -d '{\"tokens\":3}' " + entity + ":release",
		"curl $SAMYA_ADDR/v1/sites",
		"curl $SAMYA_ADDR/metrics",
		opts.Bin + " entity get " + name,
	}
	if p.workload == Hierarchy {
		lines = append(lines, opts.Bin+" entity tree")
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteString("\nApp managers:\n")
	for i, r := range Regions() {
		fmt.Fprintf(&b, "  %s http://%s\n", r, cluster.AppManager(i).HTTP)
	}
	return b.String()
}

// newClient returns a client of the first region's app manager.
func (d *driver) newClient() (*httpapi.Client, error) {
	return httpapi.New(d.regions[0].Addr, d.transport)
}

// prefix begins the request ids of a run.
func prefix(now time.Time) string { return "demo-" + strconv.FormatInt(now.UnixNano(), 36) + "-" }
