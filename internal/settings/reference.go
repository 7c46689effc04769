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

// Reference writes all keys of the kinds as a page of documentation. A key that means
// the same in an earlier kind refers to it.
func Reference(w io.Writer, kinds []Kind) error {
	var b strings.Builder
	b.WriteString(reference)
	earlier := make(map[string]string) // kind by key and meaning
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## `%s`\n\nFor %s.\n\n", k.Name, k.About)
		b.WriteString("| key | value | default | environment | meaning |\n|---|---|---|---|---|\n")
		for _, f := range k.Keys() {
			_, usage := pflag.UnquoteUsage(f)
			meaning := cell(usage)
			if first, ok := earlier[f.Name+" "+usage]; ok {
				meaning = fmt.Sprintf("[above](#%s)", first)
			} else {
				earlier[f.Name+" "+usage] = k.Name
			}
			// The page tells once how values are written.
			value, _, _ := strings.Cut(typeName(f), " (")
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", f.Name, value, defaultOf(f), k.EnvNames(f.Name)[0], meaning)
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
