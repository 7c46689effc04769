package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/buildinfo"
)

// The linker sets the version and revision of a release, with -X. The build does not
// read the repository, so that it comes out the same everywhere.
var (
	releaseVersion  string
	releaseRevision string
)

// versionCommand is `samya version`.
func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.stdout, version())
			return err
		},
	}
}

// version returns the text of [build].
func version() string { return build().String() }

// build returns the version and revision of the program.
func build() buildinfo.Info { return buildinfo.Read(releaseVersion, releaseRevision) }
