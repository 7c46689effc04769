package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/samya-db/samya/doctor"
	"github.com/samya-db/samya/doctor/datadir"
	"github.com/samya-db/samya/doctor/fleet"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/site/store"
)

const (
	// watchFor is how long a doctor looks by default, mostWatch how long at most: no rule
	// looks back further.
	watchFor  = 5 * time.Second
	mostWatch = time.Hour
	// mostBetween is the longest time between two looks.
	mostBetween = 15 * time.Second
	// textWidth is the width of a report where it is not printed to a terminal, mostWidth
	// the most in a terminal.
	textWidth, mostWidth = 100, 120
)

// verdictError ends a command that has printed a verdict other than healthy.
type verdictError struct{ code int }

func (e *verdictError) Error() string { return fmt.Sprintf("verdict: exit status %d", e.code) }

// verdicts are the exit statuses of the verdicts.
var verdicts = map[string]int{string(doctor.Warning): exitWarning, string(doctor.Critical): exitCritical}

// physician is `samya doctor`.
type physician struct {
	*talker
	data               string
	appManagers, sites []string
	watchFor           time.Duration
}

// doctorCommand is `samya doctor`.
func (p *program) doctorCommand() *cobra.Command {
	d := &physician{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what is wrong with a cluster or a data directory, and what to do",
		Long: `Tells what is wrong, how bad it is, and what to do, the worst first.

Of a cluster it asks an app manager which sites there are, reads the metrics of
all, and judges them by the alerting rules of deploy/monitoring. Rules are about
rates and lasting conditions, so it looks for --watch-for. A rule that looks back
further is judged by what was seen. With access control the caller needs the role
viewer without prefixes.

With --data it looks at the data directory of a site that does not run, without
a change of it: whose data it is, and whether a site would start on it. A site
that is started meanwhile waits or is refused.

Each finding has a section in docs/runbooks.md.

Exit status:
  0    healthy, or notices alone
  7    warnings
  8    something is critical
  others as with all commands: 2 is wrong usage, 1 a directory in use`,
		Example: "  samya doctor\n  samya doctor --watch-for 10m --json\n  samya doctor --data /var/lib/samya",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(cmd); err != nil {
				return err
			}
			report, err := d.examine(cmd.Context())
			if err != nil {
				return err
			}
			if err := d.show(&report); err != nil {
				return err
			}
			if code := verdicts[report.Verdict]; code != 0 {
				return &verdictError{code}
			}
			return nil
		},
	}
	d.talker = p.talk(cmd)
	f := cmd.Flags()
	f.StringVar(&d.data, "data", "", "directory of the site's state, its own for ever")
	f.StringSliceVar(&d.appManagers, "more-app-managers", nil, "HTTP addresses of further app managers")
	f.StringSliceVar(&d.sites, "more-sites", nil, "HTTP addresses of sites, beside those that app managers tell of")
	f.DurationVar(&d.watchFor, "watch-for", watchFor, "how long to look, 1s to 1h")
	must(cmd.MarkFlagDirname("data"))
	return cmd
}

// check refuses flags that do not go together.
func (d *physician) check(cmd *cobra.Command) error {
	if d.watchFor < time.Second || d.watchFor > mostWatch {
		return &usageError{fmt.Errorf("watch-for: %s, must be %s to %s", d.watchFor, time.Second, mostWatch)}
	}
	if d.data == "" {
		return nil
	}
	for _, name := range []string{"more-app-managers", "more-sites", "watch-for"} {
		if cmd.Flags().Changed(name) {
			return &usageError{fmt.Errorf("%s: it is about a cluster, and --data about a directory", name)}
		}
	}
	return nil
}

// examine looks at what the flags name.
func (d *physician) examine(ctx context.Context) (doctor.Report, error) {
	if d.data == "" {
		return d.cluster(ctx)
	}
	r, err := datadir.Examine(d.data)
	if errors.Is(err, store.ErrInUse) {
		return r, &hintError{err, "a site runs on it: ask the cluster, with samya doctor without --data, or stop the site first"}
	}
	return r, err
}

// cluster looks at a cluster for a while.
func (d *physician) cluster(ctx context.Context) (doctor.Report, error) {
	if _, err := d.client(); err != nil { // it names the flag at fault
		return doctor.Report{}, err
	}
	for _, addr := range d.appManagers {
		url, transport, err := d.secrets.transport(addr)
		if err == nil {
			_, err = httpapi.New(url, transport)
		}
		if err != nil {
			return doctor.Report{}, &usageError{fmt.Errorf("more-app-managers: %w", err)}
		}
	}
	f := &fleet.Fleet{
		AppManagers: slices.Concat([]string{d.addr}, d.appManagers), Sites: d.sites, Connect: d.secrets.transport,
	}
	diagnosis := doctor.NewDiagnosis()
	began := time.Now()
	between := min(max(d.watchFor/20, watchFor), mostBetween, d.watchFor)
	for at := time.Duration(0); ; at = min(at+between, d.watchFor) {
		d.progress(at)
		select {
		case <-ctx.Done():
			return doctor.Report{}, context.Cause(ctx)
		case <-time.After(time.Until(began.Add(at))):
		}
		look, err := f.Look(ctx, time.Now())
		if err == nil {
			err = diagnosis.Add(look)
		}
		if err != nil {
			return doctor.Report{}, err
		}
		if at == d.watchFor {
			break
		}
	}
	d.progress(-1)
	return diagnosis.Report()
}

// progress tells in a terminal how long is still to look; below 0 it clears its line.
func (d *physician) progress(at time.Duration) {
	if _, ok := terminal(d.program.stderr); !ok {
		return
	}
	text := ""
	if at >= 0 {
		text = fmt.Sprintf("looking at the cluster: %s of %s", at.Round(time.Second), d.watchFor)
	}
	_, _ = fmt.Fprintf(d.program.stderr, "\r\x1b[K%s", text) // a terminal that is gone shows nothing
}

// show prints a report.
func (d *physician) show(r *doctor.Report) error {
	if d.json {
		return d.print(r, nil)
	}
	width := textWidth
	if cols, ok := terminal(d.program.stdout); ok {
		width = min(cols, mostWidth)
	}
	return r.Write(d.program.stdout, width)
}

// terminal returns the columns of the terminal that w writes to, if it does.
func terminal(w io.Writer) (cols int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	cols, _, err := term.GetSize(int(f.Fd()))
	return cols, err == nil
}
