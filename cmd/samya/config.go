package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/settings"
)

// configCommand is `samya config`.
func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a file of settings, or show which settings are in force",
		Long: `A file of settings is YAML. Its top-level keys are the kinds of process that
take settings from it, site, appmgr and client (all commands that talk to a
cluster); below each stand keys named as the flags:

  site:
    name: us
    data: /var/lib/samya
    members: [us, eu, as]
    log-level: debug

It is named by --config or SAMYA_CONFIG. A flag goes before the environment,
the environment before the file. docs/configuration.md lists all keys.`,
		Args: exactly(),
	}
	cmd.AddCommand(p.configCheck(), p.configShow(), p.configReference())
	return cmd
}

// configCheck is `samya config check`.
func (p *program) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE…",
		Short: "Check files as the processes do that start with them",
		Long: `Checks files as the processes do that start with them: every kind of process
that a file has settings of judges them as far as it can without listening and
without opening its data. Files that are named in it, of keys and the like, must
be there. What is set in the environment counts as it does at a start, so a file
that several sites share can be checked with SAMYA_SITE_NAME set.`,
		Example: "  samya config check /etc/samya/samya.yaml\n  SAMYA_SITE_NAME=us samya config check shared.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{errors.New("no file, want at least one")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, path := range args {
				kinds, err := p.judge(cmd.Context(), path)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if _, err := fmt.Fprintf(p.stdout, "%s: ok: %s\n", path, strings.Join(kinds, ", ")); err != nil {
					return fmt.Errorf("print the result: %w", err)
				}
			}
			if err := errors.Join(errs...); err != nil {
				return &hintError{&usageError{err}, "docs/configuration.md lists all keys and what their values must be"}
			}
			return nil
		},
	}
}

// judge has each kind of process with settings in the file check them, and returns the
// kinds.
func (p *program) judge(ctx context.Context, path string) ([]string, error) {
	file, err := settings.Read(path, p.kinds())
	if err != nil {
		return nil, err
	}
	var names []string
	var errs []error
	for _, kind := range file.Sections(p.kinds()) {
		names = append(names, kind.Name)
		judge := &program{
			stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
			lookupEnv: p.lookupEnv, environ: p.environ, judging: true,
		}
		cmd := judge.commandOf(kind.Name)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return judge.settle(cmd) }
		cmd.SetArgs([]string{"--" + settings.ConfigFlag, path})
		err := cmd.ExecuteContext(ctx)
		errs = append(errs, judge.settled.Locate(err))
		p.warn(judge.settled)
	}
	return names, errors.Join(errs...)
}

// configShow is `samya config show`.
func (p *program) configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the settings in force, and where each is from",
		Long: `Shows the settings that a process would start with, given the same flags, the
same environment and the same file, and where each is from: a flag, a variable, a
line of the file or the default. What is printed is a file that sets all of them.

Values are not judged; samya config check does that.`,
		Example: "  samya config show site --config samya.yaml --log-level debug",
		Args:    exactly(),
	}
	for _, kind := range p.kinds() {
		shown := p.commandOf(kind.Name)
		sub := &cobra.Command{
			Use:   kind.Name,
			Short: "Show the settings of " + strings.ReplaceAll(kind.About, "`", ""),
			Args:  exactly(),
			// The settings come from the kind, not from this command.
			PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
			RunE: func(cmd *cobra.Command, _ []string) error {
				settled, err := p.settlement(cmd.Flags(), kind.Name, kind.Name)
				if err != nil {
					return &usageError{err}
				}
				p.warn(settled)
				return settled.Show(p.stdout)
			},
		}
		sub.Flags().AddFlagSet(flagsOf(shown))
		cmd.AddCommand(sub)
	}
	return cmd
}

// configReference is `samya config reference`, which prints docs/configuration.md.
func (p *program) configReference() *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print docs/configuration.md",
		Hidden: true,
		Args:   exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := settings.Reference(p.stdout, p.kinds()); err != nil {
				return err
			}
			if err := p.variableReference(); err != nil {
				return err
			}
			return preset.Reference(p.stdout)
		},
	}
}
