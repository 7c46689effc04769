package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand is `samya man`.
func (p *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the man pages of all commands into a directory",
		Long: `Writes one man page for each command into a directory, which is made if need
be. The month in their footer is that of SOURCE_DATE_EPOCH, if it is set.`,
		Example: "  samya man ~/.local/share/man/man1 && man samya-site",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write the man pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the tag holds the day of the writing
			header := &doc.GenManHeader{Section: "1", Source: "samya", Manual: "samya"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write the man pages: %w", err)
			}
			return nil
		},
	}
}
