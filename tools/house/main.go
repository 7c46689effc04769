// Command house measures the structure of the code from its syntax trees, and the
// language of comments and documentation. It fails where a bound does not hold. Bounds
// on structure are against imports that run up between top-level folders, circles of
// files in the core, and types with too many methods. Further bounds are against
// packages with too many exported names or with names that no package imports, and texts
// with too many pronouns. It refuses to judge a module in part: a package with an error
// ends the run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "house: "+err.Error())
		os.Exit(1)
	}
}

// errBeyond says that a bound does not hold.
var errBeyond = errors.New("beyond a bound")

// run executes a command line.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.SetOutput(stdout)
	dir := flags.String("dir", ".", "directory of the module")
	verbose := flags.Bool("v", false, "name each place that counts")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	m, err := load(ctx, *dir)
	if err != nil {
		return err
	}
	all, err := m.measure()
	if err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(all)
	} else {
		err = write(stdout, all, *verbose)
	}
	if err != nil {
		return fmt.Errorf("print the measures: %w", err)
	}
	var beyond []string
	for _, one := range all {
		if !one.holds() {
			beyond = append(beyond, one.Name)
		}
	}
	if len(beyond) > 0 {
		return fmt.Errorf("%w: %s", errBeyond, strings.Join(beyond, "; "))
	}
	return nil
}

// few is the number of places named without -v.
const few = 5

func write(w io.Writer, all []Measure, verbose bool) error {
	var table, places strings.Builder
	for _, m := range all {
		bound, verdict := "-", ""
		if m.Bound != noBound {
			bound, verdict = fmt.Sprintf("≤ %d", m.Bound), "ok"
			if !m.holds() {
				verdict = "BEYOND"
			}
		}
		fmt.Fprintf(&table, "%s\t%d\t%s\t%s\n", m.Name, m.Now, bound, verdict)
		where := m.Where
		if !verbose && len(where) > few {
			where = where[:few]
		}
		if len(where) > 0 {
			fmt.Fprintf(&places, "\n%s:\n  %s\n", m.Name, strings.Join(where, "\n  "))
		}
		if n := len(m.Where) - len(where); n > 0 {
			fmt.Fprintf(&places, "  and %d more (-v names all)\n", n)
		}
	}
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(aligned, table.String()); err != nil {
		return err
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, places.String())
	return err
}
