package settings

import (
	_ "embed" // the words around the tables
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

//go:embed reference.md
var reference string

// Reference writes all keys of the kinds as a page of documentation.
func Reference(w io.Writer, kinds []Kind) error {
	var b strings.Builder
	b.WriteString(reference)
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## `%s`\n\nFor %s.\n\n", k.Name, k.About)
		b.WriteString("| key | value | default | environment | meaning |\n|---|---|---|---|---|\n")
		for _, f := range k.Keys() {
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", f.Name, typeName(f), defaultOf(f), k.EnvNames(f.Name)[0], cell(usage))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the reference: %w", err)
	}
	return nil
}

// defaultOf returns the default of a flag, as a cell of the reference.
func defaultOf(f *pflag.Flag) string {
	if f.DefValue == "" || f.DefValue == "[]" {
		return ""
	}
	return "`" + f.DefValue + "`"
}

// cell escapes characters that would end a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ")
}
