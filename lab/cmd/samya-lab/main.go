// Command samya-lab tests the protocols by search and simulation, and judges
// policies and forecasting models. Each method is a subcommand. The command is
// wiring only, and touches no running cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit statuses; the help of the root command explains them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

var (
	// errViolated fails a command that has already told the violation.
	errViolated = errors.New("an invariant does not hold")
	// errInterrupted says that a signal ended the command.
	errInterrupted = errors.New("interrupted")
)

// usageError says that the command line is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-received
		signal.Stop(received) // a second signal ends the program at once
		cancel(errInterrupted)
	}()
	l := &lab{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(l.run(ctx, os.Args[1:]))
}

// lab is the outside world of the commands.
type lab struct {
	stdout, stderr io.Writer
}

// run executes a command line and returns its exit status.
func (l *lab) run(ctx context.Context, args []string) int {
	root := l.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errViolated) {
		_, _ = fmt.Fprintln(l.stderr, "samya-lab:", err) // no place is left for an error
	}
	_, usage := errors.AsType[*usageError](err)
	switch {
	case usage:
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	default:
		return exitFailed
	}
}

// root returns the whole command line.
func (l *lab) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "samya-lab",
		Short: "Test the redistribution protocols, and judge policies and forecasts",
		Long: `samya-lab runs the protocols that redistribute tokens under conditions that no
real cluster meets often enough, and checks their invariants. It also judges the
models that forecast demand.

Exit status:
  0    done; every invariant holds
  1    an invariant does not hold, or the command failed
  2    wrong usage: flags or values; nothing was done
  130  interrupted`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(l.stdout)
	root.SetErr(l.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(l.exploreCommand(), l.simCommand(), l.scenariosCommand(), l.mutantsCommand(), l.predictCommand(), l.traceCommand(), l.replayCommand(),
		l.compareCommand(), l.echoCommand(), l.ycsbCommand(), l.kvCommand(), l.partitionCommand())
	root.AddCommand(l.experimentCommand(), l.hierarchyCommand(), l.earlyCommand(), l.coresCommand(), l.ratesCommand(), l.rlsCommand(), l.rlsEchoCommand(),
		l.transportsCommand(), l.transportsServeCommand(), l.spansCommand())
	return root
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}
