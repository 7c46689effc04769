package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
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
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "samya, of unknown version"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = " " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ", modified"
			}
		}
	}
	number := info.Main.Version
	if releaseVersion != "" {
		number, revision, dirty = releaseVersion, " "+releaseRevision[:min(12, len(releaseRevision))], ""
	}
	return fmt.Sprintf("samya %s%s%s, %s", number, revision, dirty, info.GoVersion)
}
