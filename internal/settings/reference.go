package settings

import (
	"cmp"
	_ "embed" // the words around the tables
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

//go:embed reference.txt
var reference string

// Reference writes all keys of the kinds as a page of documentation. A key that means
// the same in an earlier kind refers to it, or is only named if its default is the same too.
func Reference(w io.Writer, kinds []Kind) error {
	var b strings.Builder
	b.WriteString(reference)
	earlier := make(map[string]string) // kind by key and meaning
	told := make(map[string]string)    // kind by row
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## `%s`\n\nFor %s. Variables: `%s…`.\n", k.Name, k.About, cmp.Or(k.Prefix, DefaultPrefix))
		same := make(map[string][]string) // keys by kind
		var table strings.Builder
		for _, f := range k.Keys() {
			_, usage := pflag.UnquoteUsage(f)
			// The page tells once how values are written.
			value, _, _ := strings.Cut(typeName(f), " (")
			row := fmt.Sprintf("| `%s` | %s | %s | ", f.Name, value, defaultOf(f))
			if first, ok := told[row+usage]; ok {
				same[first] = append(same[first], "`"+f.Name+"`")
				continue
			}
			told[row+usage] = k.Name
			meaning := cell(usage)
			if first, ok := earlier[f.Name+" "+usage]; ok {
				meaning = fmt.Sprintf("[above](#%s)", first)
			} else {
				earlier[f.Name+" "+usage] = k.Name
			}
			table.WriteString(row + meaning + " |\n")
		}
		for _, first := range kinds {
			if keys := same[first.Name]; len(keys) > 0 {
				fmt.Fprintf(&b, "\nAs in [%s](#%[1]s): %s.\n", first.Name, strings.Join(keys, ", "))
			}
		}
		b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n" + table.String())
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
