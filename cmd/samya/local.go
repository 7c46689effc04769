package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/devcluster/local"
)

// localCommand is `samya local`.
func (p *program) localCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Run a cluster of several regions on this machine, until it is taken down",
		Long: `Runs a cluster of several regions on this machine, as processes that go on when
the command has ended. All that it writes is in one directory.

What is wanted can be said again at any time: only what differs is changed.`,
		GroupID: groupServe,
		Args:    exactly(),
	}
	cmd.AddCommand(p.localUp(), p.localApply(), p.localDrain(), p.localReplace(), p.localRemove(), p.localStatus(), p.localDown())
	return cmd
}

// localTimeout is the default bound on the wait of a command of `samya local`.
const localTimeout = 2 * time.Minute

// localFlags are the flags that commands of `samya local` share.
type localFlags struct {
	dir     string
	timeout time.Duration
}

func (f *localFlags) add(cmd *cobra.Command, timeout time.Duration) {
	cmd.Flags().StringVar(&f.dir, "dir", "samya-local", "directory of the cluster, for it alone")
	cmd.Flags().DurationVar(&f.timeout, "timeout", timeout, timeoutHelp)
	must(cmd.MarkFlagDirname("dir"))
}

// path returns the directory as an absolute path.
func (f *localFlags) path() (string, error) {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return "", fmt.Errorf("find the directory of the cluster: %w", err)
	}
	return dir, nil
}

// localUp is `samya local up`.
func (p *program) localUp() *cobra.Command {
	var f localFlags
	var regions []string
	var managers, nodes int
	cfg := local.Config{Cluster: "samya"}
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Bring a cluster up, or change the one that runs",
		Example: "  samya local up --regions us,eu,as --app-managers 2\n  samya local up --site-nodes 2",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.path()
			if err != nil {
				return err
			}
			bin, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			cfg.Dir, cfg.Samya = dir, bin
			cfg.Regions = make(map[string]local.Region, len(regions))
			for _, r := range regions {
				cfg.Regions[r] = local.Region{Sites: 1, AppManagers: managers, Nodes: nodes}
			}
			if cfg.Drain && !cmd.Flags().Changed("timeout") {
				f.timeout = leaveTimeout
			}
			return p.applyLocal(cmd.Context(), cfg, f.timeout)
		},
	}
	f.add(cmd, localTimeout)
	fs := cmd.Flags()
	fs.StringSliceVar(&regions, "regions", []string{"us", "eu", "as"}, "names of the regions; each has one site. More may join later, and some may leave with --drain")
	fs.IntVar(&managers, "app-managers", 1, "app managers of each region")
	fs.IntVar(&nodes, "site-nodes", 1, "nodes of each site: with 2 or 3 each region has an etcd of three processes, and a site survives the loss of its active node. One node may become several, not the other way")
	fs.StringVar(&cfg.Etcd, "etcd-program", "", "the program etcd, for --site-nodes 2 or 3 (default: etcd of the PATH)")
	fs.IntVar(&cfg.SitePort, "site-port", local.DefaultSitePort, "first of 300 ports for sites")
	fs.IntVar(&cfg.AppManagerPort, "app-manager-port", local.DefaultAppManagerPort, "first of 300 ports for app managers")
	fs.BoolVar(&cfg.Drain, "drain", false, "have the sites of other regions leave, which hand over what they hold")
	fs.BoolVar(&cfg.TLS, "tls", false, "encrypt, and know callers by certificates, which are made")
	fs.StringToStringVar(&cfg.SiteSettings, "site-settings", nil, "further flags of all sites, name=value,…")
	fs.StringToStringVar(&cfg.AppManagerSettings, "app-manager-settings", nil, "further flags of all app managers, name=value,…")
	return cmd
}

// localApply is `samya local apply`.
func (p *program) localApply() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "apply JSON",
		Short: "Make a cluster be what a configuration says, as terraform/local hands it over",
		Args:  exactly("JSON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := localConfig(args[0])
			if err != nil {
				return &usageError{err}
			}
			return p.applyLocal(cmd.Context(), cfg, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", localTimeout, timeoutHelp)
	return cmd
}

// localConfig reads a configuration and refuses unknown fields.
func localConfig(text string) (local.Config, error) {
	var cfg local.Config
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&cfg); err != nil {
		return cfg, fmt.Errorf("configuration: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return cfg, errors.New("configuration: something follows it")
	}
	return cfg, nil
}

// applyLocal applies a configuration, and prints the changes and the table of the
// processes.
func (p *program) applyLocal(ctx context.Context, cfg local.Config, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	err := local.Apply(ctx, cfg, func(c local.Change) {
		line := c.Did + " " + c.Name
		switch {
		case c.Did == "kept":
			return
		case c.WaitsFor != "":
			line = waitsLine(c.Name, c.WaitsFor, began)
		}
		_, _ = fmt.Fprintln(p.stdout, line) // a lost line changes nothing
	})
	switch {
	case errors.Is(err, local.ErrConfig):
		return &usageError{err}
	case errors.Is(err, local.ErrMembers):
		return &hintError{err, "have sites leave with --drain, or take it down first, which removes its data: samya local down --dir " + cfg.Dir}
	case errors.Is(err, local.ErrNoEtcd):
		return &hintError{err, etcdHint}
	case err != nil:
		return err
	}
	return p.printLocal(ctx, cfg.Dir)
}

// localStatus is `samya local status`.
func (p *program) localStatus() *cobra.Command {
	var f localFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the processes of a cluster and where they listen",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.path()
			if err != nil {
				return err
			}
			return p.printLocal(cmd.Context(), dir)
		},
	}
	f.add(cmd, localTimeout)
	return cmd
}

// etcdHint says how to get etcd.
const etcdHint = "install it (Debian: apt install etcd-server; macOS: brew install etcd; others: github.com/etcd-io/etcd/releases), and have it in the PATH; samya local also takes --etcd-program"

// printLocal prints a table of the processes, with the roles of nodes if any site has
// several.
func (p *program) printLocal(ctx context.Context, dir string) error {
	state, err := local.Read(dir)
	if err != nil {
		return err
	}
	if len(state.Processes) == 0 {
		return &hintError{fmt.Errorf("there is no cluster in %s", dir), "bring one up with: samya local up --dir " + dir}
	}
	roles, role := map[string]string(nil), ""
	if len(state.Nodes) > 0 {
		roles, role = local.Roles(ctx, state), "ROLE\t"
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tREGION\t"+role+"PROCESS\tHTTP\tGRPC") // Flush returns the error
	for _, name := range state.Names() {
		r := state.Processes[name]
		runs := fmt.Sprint(r.PID)
		if !state.Runs(name) {
			runs = "gone"
		}
		if role != "" {
			role = cmp.Or(roles[name], "-") + "\t"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s%s\t%s\t%s\n", name, r.Region, role, runs, r.HTTP, r.GRPC)
	}
	return w.Flush()
}

// localDown is `samya local down`.
func (p *program) localDown() *cobra.Command {
	var f localFlags
	var keep bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End all processes of a cluster and remove its data",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.path()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
			defer cancel()
			if err := local.Down(ctx, dir, keep); err != nil {
				return err
			}
			done := "removed " + dir
			if keep {
				done = "ended all processes; the data stays in " + dir
			}
			_, err = fmt.Fprintln(p.stdout, done)
			return err
		},
	}
	f.add(cmd, localTimeout)
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data, for a later samya local up")
	return cmd
}
