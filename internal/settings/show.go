package settings

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Show writes the values in force, as a file that sets all of them, with the origin of
// each beside it.
func (s *Settled) Show(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s:\n", s.kind.Name)
	for _, key := range s.kind.Keys() {
		f := s.flags.Lookup(key.Name)
		fmt.Fprintf(text, "  %s: %s\t# %s\n", f.Name, yamlValue(f), s.Origin(f.Name))
	}
	if _, err := io.WriteString(table, text.String()); err != nil {
		return fmt.Errorf("show the configuration: %w", err)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("show the configuration: %w", err)
	}
	return nil
}
