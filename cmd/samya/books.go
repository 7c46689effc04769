package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/bookcopy"
)

// booksCommand is `samya books`.
func (p *program) booksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "books",
		Short: "Copy the books of a cluster to a file, or into a new cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	t := p.talk(cmd)
	cmd.AddCommand(t.booksExport(), t.booksImport())
	return cmd
}

func (t *talker) booksExport() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export --to FILE",
		Short: "Write the books of all entities as lines of JSON",
		Long: `Reads every entity at all sites, exactly, and writes a line of JSON for each:
limit, version, parent, the sites' shares, and the tokens that leases hold. The
last line has a checksum. Each line is a consistent cut of its entity, or says
that it is not: then the exit status is 1. The lines are not of one moment.`,
		Example: "  samya books export --to books.jsonl\n  samya books export --to - | jq -r 'select(.acquired > 0) | [.name, .acquired] | @tsv'",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := t.client()
			if err != nil {
				return err
			}
			out, err := t.program.output(to)
			if err != nil {
				return err
			}
			counter := t.program.counter()
			end, err := bookcopy.Export(cmd.Context(), client, out, build().Version, func(n int) { counter.tell("%d entities", n) })
			counter.end()
			if err != nil {
				out.discard()
				return interrupted(cmd.Context(), fmt.Errorf("export the books: %w", err))
			}
			if err := out.publish(); err != nil {
				return err
			}
			var notes []string
			if end.Inconsistent > 0 {
				notes = append(notes, fmt.Sprintf("%d of %d entities were not read as a consistent cut: their lines say \"consistent\":false", end.Inconsistent, end.Entities))
			}
			if len(end.LeasesMissing) > 0 {
				notes = append(notes, "leases of these sites are missing: "+strings.Join(end.LeasesMissing, ", "))
			}
			_, err = fmt.Fprintf(t.program.stderr, "exported %d entities\n", end.Entities)
			if err == nil && len(notes) > 0 {
				_, err = fmt.Fprintln(t.program.stderr, strings.Join(notes, "\n"))
			}
			if err == nil && end.Inconsistent > 0 {
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", toUsage)
	return cmd
}

func (t *talker) booksImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make the entities of exported books in a new cluster",
		Long: `Makes the entities of a file that samya books export wrote, with parents and
limits, and acquires the tokens that were in use, so that the new cluster grants
no more than was free. Clients release them as before. Tokens of leases are
acquired for good: the leases are not there.

The file must be whole, with a consistent read of each entity. Point no clients
at the new cluster before the import is done. An import that failed goes on
where it ended if it is repeated.`,
		Example: "  samya books import books.jsonl --addr http://new.example:8080",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			books, err := readBooks(args[0])
			if err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			counter := t.program.counter()
			done, err := bookcopy.Import(cmd.Context(), client, books, func(step string, n, of int) { counter.tell("%s: %d of %d", step, n, of) })
			counter.end()
			if err != nil {
				return interrupted(cmd.Context(), &hintError{
					fmt.Errorf("import the books: %w", err), "nothing is granted twice; once the cause is gone, repeat: samya books import " + args[0],
				})
			}
			return t.print(done, func(w io.Writer) {
				row(w, fmt.Sprintf("imported %d entities of cluster %s: %d were made, tokens of %d acquired, limits of %d set",
					len(books.Entries), books.Header.Cluster, done.Created, done.Acquired, done.Limited))
				row(w, fmt.Sprintf("tokens in use: %d", done.Tokens))
			})
		},
	}
	return cmd
}

func readBooks(path string) (*bookcopy.Books, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import the books: %w", err)
	}
	defer func() { _ = f.Close() }() // it was read
	books, err := bookcopy.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return books, nil
}

// interrupted marks the error of a command that a signal ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return errors.Join(errInterrupted, err)
	}
	return err
}
