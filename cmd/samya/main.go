// Command samya runs the parts of a samya cluster (a site, an app manager, a demo of all
// of them) and is its command line for people. It is wiring only: the parts are packages
// of their own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/settings"
)

func main() {
	// Signals are handled before anything else starts.
	ctx, hurry, release := signals(context.Background())
	p := &program{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv, environ: os.Environ, hurry: hurry,
	}
	code := p.run(ctx, os.Args[1:])
	release()
	os.Exit(code)
}

// program is the environment of the commands.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(key string) (string, bool)
	environ        func() []string // nil: nobody looks for mistyped variables
	hurry          <-chan struct{} // closed by a second signal

	// judging makes a process check its settings and not run.
	judging bool
	// settled holds the sources of the running command's settings.
	settled *settings.Settled
}

// run executes a command line and returns its exit status.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code, text := explain(p.settled.Locate(err), cmd)
	if text != "" {
		_, _ = fmt.Fprintln(p.stderr, text) // no other output is left for an error
	}
	return code
}

// root is the whole command line.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "samya",
		Short: "Token quotas for many regions: run a cluster, or talk to one",
		Long: `samya grants tokens of entities (VMs, seats, API calls, stock) up to a global
limit, answering almost every request inside its own region.

Every flag can also be set by an environment variable: SAMYA_ and the flag's
name in capitals, '-' as '_' (--max-wait is SAMYA_MAX_WAIT). Sites, app managers
and what commands that talk to a cluster share have prefixes of their own:
SAMYA_SITE_, SAMYA_APPMGR_ and SAMYA_CLIENT_. What a process
of a cluster needs, and what all commands that talk to one share, can
stand in a file as well: --config FILE, or SAMYA_CONFIG (samya config --help).
A flag goes before the environment, the environment before the file, the file
before the default.

Exit status:
  0    done
  1    failed
  2    wrong usage: flags, arguments or values; nothing was done
  3    not enough tokens; nothing was done
  4    no such entity, parent or lease; nothing was done
  5    no app manager or no site can be reached; nothing was done
  6    the outcome is unknown: the request may or may not have been done
  7    samya doctor found something to look after
  8    samya doctor found something critical
  130  interrupted`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return p.settle(cmd)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{settings.FlagError(err)} })
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Run a cluster:"},
		&cobra.Group{ID: groupTalk, Title: titleTalk},
	)
	root.AddCommand(
		p.siteCommand(), p.appmgrCommand(), p.localCommand(), p.demoCommand(),
		p.entityCommand(), p.acquireCommand(), p.releaseCommand(), p.leaseCommand(), p.sitesCommand(), p.memberCommand(), p.clusterCommand(), p.modeCommand(),
		p.forecastCommand(), p.doctorCommand(), p.consoleCommand(), p.booksCommand(), p.backupCommand(),
		p.certsCommand(), p.ratelimitCommand(), p.configCommand(), p.manCommand(), p.versionCommand(),
	)
	return root
}

// The groups of the commands in the help.
const (
	groupServe = "serve"
	groupTalk  = "talk"
	titleTalk  = "Talk to a cluster:"
)

// signals returns a context that the first SIGINT, SIGTERM or SIGHUP ends, with
// [errInterrupted] as the cause. The second signal closes hurry.
func signals(parent context.Context) (ctx context.Context, hurry <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	second := make(chan struct{})
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-received
		cancel(errInterrupted)
		<-received
		close(second)
	}()
	return ctx, second, func() {
		signal.Stop(received)
		cancel(nil)
	}
}
