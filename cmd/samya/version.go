package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/buildinfo"
)

// What a release is told while it is linked, with -X: it is built without a
// look at the repository, so that it comes out the same wherever it is built.
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

// version tells what the program was built from.
func version() string { return build().String() }

// build is what the program was built from.
func build() buildinfo.Info { return buildinfo.Read(releaseVersion, releaseRevision) }
