package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

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
			date, err := p.releaseDate()
			if err != nil {
				return err
			}
			header := &doc.GenManHeader{Section: "1", Source: "samya", Manual: "samya", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write the man pages: %w", err)
			}
			return nil
		},
	}
}

// releaseDate is the time of SOURCE_DATE_EPOCH, or else now. It is in UTC: two machines that
// build a release on the last day of a month may be in two months.
func (p *program) releaseDate() (time.Time, error) {
	text, _ := p.lookupEnv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, &usageError{fmt.Errorf("SOURCE_DATE_EPOCH: %q is no number of seconds", text)}
	}
	return time.Unix(seconds, 0).UTC(), nil
}
