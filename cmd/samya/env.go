package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/preset"
	"github.com/samya-db/samya/internal/settings"
)

// The kinds of process with settings in a file. A kind is a top-level key of the file.
const (
	kindSite   = "site"
	kindAppmgr = "appmgr"
	kindClient = "client"
)

// kindKey is the annotation of a command with its kind.
const kindKey = "samya.settings"

// settingsOf says that a command takes its settings from a kind's part of the file. So
// do the commands below it, unless they have a kind of their own.
func settingsOf(cmd *cobra.Command, kind string) {
	if cmd.Annotations == nil {
		cmd.Annotations = make(map[string]string)
	}
	cmd.Annotations[kindKey] = kind
}

// kindOf returns the kind of a command; empty for a command without a file.
func kindOf(cmd *cobra.Command) string {
	for ; cmd != nil; cmd = cmd.Parent() {
		if kind := cmd.Annotations[kindKey]; kind != "" {
			return kind
		}
	}
	return ""
}

// configFlag defines --config.
func configFlag(f *pflag.FlagSet) {
	f.String(settings.ConfigFlag, "", "file of settings, YAML; see samya config")
	must(cobra.MarkFlagFilename(f, settings.ConfigFlag, "yaml", "yml"))
}

// commandOf makes the command with the settings of a kind as flags. For clients it makes
// a command with the flags that all clients share; the command only checks them.
func (p *program) commandOf(kind string) *cobra.Command {
	switch kind {
	case kindSite:
		return p.siteCommand()
	case kindAppmgr:
		return p.appmgrCommand()
	}
	var t *talker
	cmd := &cobra.Command{
		Use: kindClient,
		RunE: func(*cobra.Command, []string) error {
			_, err := t.client()
			return err
		},
	}
	t = p.talk(cmd)
	return cmd
}

// kinds returns all kinds with their flags.
func (p *program) kinds() []settings.Kind {
	kinds := []settings.Kind{
		{Name: kindSite, About: "`samya site`"},
		{Name: kindAppmgr, About: "`samya appmgr`"},
		{Name: kindClient, About: "all commands that talk to a cluster: `samya acquire`, `samya entity`, `samya sites`, …", Optional: true},
	}
	for i := range kinds {
		k := &kinds[i]
		k.Flags, k.Prefix = flagsOf(p.commandOf(k.Name)), prefixes[k.Name]
	}
	return kinds
}

// flagsOf returns the flags of a command.
func flagsOf(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	flags.AddFlagSet(cmd.Flags())
	flags.AddFlagSet(cmd.PersistentFlags())
	return flags
}

// settle sets the flags that the command line does not set, from the environment and
// from the file that --config or SAMYA_CONFIG names.
func (p *program) settle(cmd *cobra.Command) error {
	settled, err := p.settlement(cmd.Flags(), kindOf(cmd), pathOf(cmd))
	p.settled = settled
	if err != nil {
		return &usageError{err}
	}
	return nil
}

// settlement is settle for flags of a kind of process, without the error of wrong usage.
// path is the command's name.
func (p *program) settlement(flags *pflag.FlagSet, kind, path string) (*settings.Settled, error) {
	var k settings.Kind
	var file *settings.File
	kinds := p.kinds()
	if f := flags.Lookup(settings.ConfigFlag); f != nil && kind != "" {
		k = kinds[slices.IndexFunc(kinds, func(k settings.Kind) bool { return k.Name == kind })]
		k.Variables = variablesOf(kinds, kind, path)
		if _, err := k.FromEnvironment(flags, f, p.lookupEnv); err != nil {
			return nil, err
		}
		if path := f.Value.String(); path != "" {
			var err error
			if file, err = settings.Read(path, kinds); err != nil {
				return nil, err
			}
		}
	} else {
		k.Variables = variablesOf(kinds, "", path)
	}
	settled, err := settings.Settle(flags, k, file, p.lookupEnv)
	if kind == kindSite || kind == kindAppmgr {
		settled.Warnings = append(settled.Warnings, p.unknownVariables(kind)...)
	}
	if f := flags.Lookup(preset.Flag); f != nil && err == nil {
		err = settled.Fill(f, preset.Values(preset.Name(f.Value.String())))
	}
	return settled, err
}

// warn writes warnings about settings for a person.
func (p *program) warn(s *settings.Settled) {
	if s == nil {
		return
	}
	for _, w := range s.Warnings {
		_, _ = fmt.Fprintln(p.stderr, "warning: "+w) // no other output is left for a warning
	}
}
