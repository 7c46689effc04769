package realtime

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/replay/sites"
)

// Experiment is Table 6 and Figure 9 of the Samya paper, on real processes.
var Experiment = experiment.Experiment{
	Name: "real", Short: "five real site processes under the demand that virtual time plays",
	Long: `Plays the first minutes of a demand in real time to five site processes on this
machine, with the round trips of Table 5 between them, and the same demand in
virtual time. Fails if the processes commit less, or if their books do not add up.
All processes are stopped in the end, also on Ctrl-C.`,
	New: declare,
}

const (
	// binsAMinute is the number of bins of a demand in a minute.
	binsAMinute = int(time.Minute / replay.Bin)
	// leastCommitted is the goal, in per cent of the transactions committed in
	// virtual time.
	leastCommitted = 99.9
	// mostRefused and refusedBeside bound the refusals under a scarce limit:
	// mostRefused times the refusals in virtual time, plus refusedBeside. In both,
	// cold sites refuse more than a single counter would; the goal does not judge
	// that.
	mostRefused, refusedBeside = 1.1, 100
	// busy is the largest delay of the load, in milliseconds, at which the
	// percentiles still describe the sites.
	busy = 5
)

// options are the flags of the experiment.
type options struct {
	workloads []string
	minutes   int
	scarce    bool
	limit     int64
	bin, dir  string
	settings  map[string]string
}

func declare(flags *pflag.FlagSet) experiment.Run {
	var o options
	most := replay.MaxBins / binsAMinute
	flags.StringSliceVar(&o.workloads, "workload", []string{"fit", "tight"}, "workload: "+strings.Join(replay.Workloads(), ", "))
	flags.IntVar(&o.minutes, "minutes", 1, fmt.Sprintf("how many minutes to play, 1 to %d", most))
	flags.Int64Var(&o.limit, "limit", int64(replay.Limit), "limit of the entity")
	flags.BoolVar(&o.scarce, "scarce", true, "also play each with a limit that is as tight for these minutes as --limit is for the hour")
	flags.StringVar(&o.bin, "samya", "", "the samya program (default: beside this one)")
	flags.StringVar(&o.dir, "dir", "", "where to keep the data meanwhile (default: that of temporary files)")
	flags.StringToStringVar(&o.settings, "site-settings", nil, "further flags of all sites, name=value,…; virtual time knows nothing of them")
	return func(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
		if err := o.check(most); err != nil {
			return nil, err
		}
		return o.run(ctx, env)
	}
}

func (o *options) check(most int) error {
	switch {
	case o.minutes < 1 || o.minutes > most:
		return fmt.Errorf("%w: --minutes is %d, want 1 to %d", experiment.ErrOptions, o.minutes, most)
	case o.limit < 1:
		return fmt.Errorf("%w: --limit is %d, want at least 1", experiment.ErrOptions, o.limit)
	case len(o.workloads) == 0:
		return fmt.Errorf("%w: --workload names none", experiment.ErrOptions)
	}
	for _, w := range o.workloads {
		if !slices.Contains(replay.Workloads(), w) {
			return fmt.Errorf("%w: --workload: no %q, known are %v", experiment.ErrOptions, w, replay.Workloads())
		}
	}
	var err error
	o.bin, err = Program(o.bin)
	return err
}

// Program finds the samya program: by name, or beside this program if name is
// empty. It fails with experiment.ErrOptions.
func Program(name string) (string, error) {
	if name == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find this program: %w", err)
		}
		name = filepath.Join(filepath.Dir(self), "samya")
	}
	bin, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(bin)
	}
	if err != nil {
		return "", fmt.Errorf("%w: --samya: %w (make build makes it)", experiment.ErrOptions, err)
	}
	return bin, nil
}

// Played is a demand played in real and in virtual time.
type Played struct {
	*Result
	// Virtual is the result in virtual time, Oracle the result of a single counter
	// without latency.
	Virtual *replay.Result `json:"virtual"`
	Oracle  replay.Oracle  `json:"oracle"`
	// offered is the number of transactions of each window if all were granted at
	// once.
	offered []int
}

// Share returns the committed transactions in per cent of the transactions
// committed in virtual time.
func (p *Played) Share() float64 {
	return 100 * float64(p.Committed()) / float64(max(1, p.Virtual.Granted+p.Virtual.Releases))
}

// PlayBoth plays a demand in real and then in virtual time, to sites with default
// settings.
func PlayBoth(ctx context.Context, o Options) (*Played, error) {
	played, err := Play(ctx, o)
	if err != nil {
		return nil, err
	}
	limit := avantan.Tokens(played.Limit)
	virtual, err := replay.Run(replay.Options{Demand: o.Demand, Limit: limit, Wait: o.Wait}, sites.New(nil))
	if err != nil {
		return nil, fmt.Errorf("in virtual time: %w", err)
	}
	return &Played{played, virtual, o.Demand.Oracle(limit), offered(o.Demand)}, nil
}

// run plays all workloads.
func (o *options) run(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
	var plays []Options
	var siteArgs []string
	for _, name := range slices.Sorted(maps.Keys(o.settings)) {
		siteArgs = append(siteArgs, "--"+name+"="+o.settings[name])
	}
	for _, w := range o.workloads {
		d, err := replay.Draw(w, env.Seed, o.minutes*binsAMinute)
		if err != nil {
			return nil, err
		}
		if env.Quick {
			d = Cut(d, quickSpan)
		}
		one := Options{Demand: d, Limit: o.limit, Bin: o.bin, Dir: o.dir, SiteArgs: siteArgs}
		plays = append(plays, one)
		if !o.scarce {
			continue
		}
		hour, err := replay.Draw(w, env.Seed, replay.MaxBins)
		if err != nil {
			return nil, err
		}
		if one.Limit = scarce(o.limit, d, hour); one.Limit < o.limit {
			plays = append(plays, one)
		}
	}
	var all []*Played
	for i, one := range plays {
		name := called(one.Demand.Workload, one.Limit)
		one.Progress = func(what string) { env.Progress(i+1, len(plays), name+": "+what) }
		p, err := PlayBoth(ctx, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		one.Progress(fmt.Sprintf("%d committed, %.2f %% of what virtual time commits; p50 %.2f, p99 %.2f ms", p.Committed(), p.Share(), p.Latency.P50, p.Latency.P99))
		all = append(all, p)
	}
	return Report(all), nil
}

// scarce returns the limit that is as scarce for d as limit is for all: the ratio
// of limit to the largest demand is the same.
func scarce(limit int64, d, all *replay.Demand) int64 {
	return int64(math.Round(float64(limit) * float64(d.Shape().Max) / float64(max(1, all.Shape().Max))))
}

// called names a play.
func called(workload string, limit int64) string { return fmt.Sprintf("%s, limit %d", workload, limit) }

// quickSpan is the length of a play with --quick.
const quickSpan = 15 * time.Second

// Cut returns the beginning of a demand.
func Cut(d *replay.Demand, span time.Duration) *replay.Demand {
	short := *d
	short.Span = min(span, d.Span)
	end := slices.IndexFunc(d.Leases, func(l replay.Lease) bool { return l.Due >= short.Span })
	if end >= 0 {
		short.Leases = d.Leases[:end]
	}
	return &short
}
