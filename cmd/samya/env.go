package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envName is the environment variable of a flag.
func envName(flag string) string {
	return "SAMYA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// environment sets the command's flags that the command line leaves alone from
// the environment.
func (p *program) environment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Hidden || f.Name == "help" {
			return
		}
		value, ok := p.lookupEnv(envName(f.Name))
		if !ok || value == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: %w", envName(f.Name), err))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return &usageError{err}
	}
	return nil
}
