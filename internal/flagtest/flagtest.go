// Package flagtest checks, in tests, that the commands of samya and samya-lab share one
// vocabulary: a flag's name has a single type and a single meaning, and a meaning has a
// single name. No product code imports it.
package flagtest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flag is a flag of a command, as the help shows it.
type Flag struct{ Name, Type, Command, Usage string }

// Of returns the flags of a command and of all commands below it, sorted.
func Of(root *cobra.Command) []Flag {
	var flags []Flag
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				flags = append(flags, Flag{f.Name, f.Value.Type(), c.CommandPath(), f.Usage})
			}
		})
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(root)
	slices.SortFunc(flags, func(a, b Flag) int {
		return strings.Compare(a.Name+" "+a.Command, b.Name+" "+b.Command)
	})
	return flags
}

// Text returns flags as lines, which Read takes.
func Text(flags []Flag) string {
	var b strings.Builder
	for _, f := range flags {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", f.Name, f.Type, f.Command, f.Usage)
	}
	return b.String()
}

// Read reads the lines of Text.
func Read(r io.Reader) ([]Flag, error) {
	var flags []Flag
	for lines := bufio.NewScanner(r); lines.Scan(); {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 4 {
			return nil, fmt.Errorf("read flags: %q has %d parts, not 4", lines.Text(), len(parts))
		}
		flags = append(flags, Flag{parts[0], parts[1], parts[2], parts[3]})
	}
	return flags, nil
}

// Faults returns the faults of a vocabulary.
func Faults(flags []Flag) []string {
	var faults []string
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	first := make(map[string]Flag) // by name
	named := make(map[string]Flag) // by meaning
	for _, f := range flags {
		if present, ok := banned[f.Name]; ok {
			bad("%s --%s: the name is --%s", f.Command, f.Name, present)
		}
		other, again := first[f.Name]
		if !again {
			first[f.Name], other = f, f
		}
		if kind(f.Type) != kind(other.Type) {
			bad("--%s is a %s of %s, and a %s of %s", f.Name, other.Type, other.Command, f.Type, f.Command)
		}
		_, general := words[f.Name]
		if Meaning(f.Usage) != Meaning(other.Usage) && !general {
			bad("--%s of %s: %q; of %s: %q", f.Name, other.Command, other.Usage, f.Command, f.Usage)
		}
		if same, ok := named[Meaning(f.Usage)]; ok && same.Name != f.Name {
			bad("%q is --%s of %s and --%s of %s", Meaning(f.Usage), same.Name, same.Command, f.Name, f.Command)
		}
		named[Meaning(f.Usage)] = f
	}
	for name := range words {
		if _, ok := first[name]; !ok {
			bad("no command has --%s", name)
		}
	}
	return faults
}

// kind is the kind of a flag's values: a list takes what a single flag takes.
func kind(typ string) string {
	typ = strings.TrimSuffix(typ, "Slice")
	switch typ {
	case "int", "int32", "int64", "uint32", "uint64":
		return "number"
	}
	return typ
}

// Meaning is the first clause of a flag's usage. Further clauses tell about a command.
func Meaning(usage string) string {
	if i := strings.IndexAny(usage, ":;,("); i > 0 {
		usage = usage[:i]
	}
	return strings.TrimSpace(usage)
}
