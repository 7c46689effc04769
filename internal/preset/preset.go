// Package preset has the timings that depend on the distance between the processes of a
// cluster, as sets with a name, like the configurations of memberlist. It keeps no time
// and knows no other settings.
package preset

import (
	"cmp"
	_ "embed" // the words around the table
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/name"
)

// Flag is the name of the setting that chooses a preset.
const Flag = "preset"

// Name is the name of a preset; empty: wan.
type Name string

// The presets. In parentheses: how long gossip thinks a silent node of a handful alive at
// most.
const (
	// Local is for processes on a single machine (some 3 s). Latencies of a wide area may
	// be injected there, so only gossip is faster than under WAN: no latency is injected
	// into gossip.
	Local Name = "local"
	// LAN is for a single region (some 4 s).
	LAN Name = "lan"
	// WAN is for regions far apart (some 30 s).
	WAN Name = "wan"
)

// Timings are the timings of a preset.
type Timings struct {
	// Gossip returns the configuration of memberlist.
	Gossip func() *memberlist.Config
	// Seeds is the pace of calls to the seeds of gossip.
	Seeds Seeds
	// CollectTime and TakeoverTime are Window and Patience of a site's core.
	CollectTime, TakeoverTime time.Duration
	// ProbeInterval, ProbeTimeout and TryTime are those of an app manager.
	ProbeInterval, ProbeTimeout, TryTime time.Duration
}

// Seeds is how often the seeds of gossip are called.
type Seeds struct {
	// First and Most bound the back-off while this node is alone.
	First, Most time.Duration
	// Steady is the interval otherwise: a state sync with the seeds and with lost members
	// joins the halves of a partition again.
	Steady time.Duration
}

const ms, sec = time.Millisecond, time.Second

var presets = map[Name]Timings{
	Local: {
		Gossip: memberlist.DefaultLocalConfig, Seeds: Seeds{100 * ms, 2 * sec, 5 * sec},
		CollectTime: 450 * ms, TakeoverTime: 1500 * ms, ProbeInterval: sec, ProbeTimeout: 2 * sec, TryTime: 2 * sec,
	},
	LAN: {
		Gossip: memberlist.DefaultLANConfig, Seeds: Seeds{250 * ms, 5 * sec, 15 * sec},
		CollectTime: 150 * ms, TakeoverTime: 500 * ms, ProbeInterval: 500 * ms, ProbeTimeout: 500 * ms, TryTime: sec,
	},
	WAN: {
		Gossip: memberlist.DefaultWANConfig, Seeds: Seeds{500 * ms, 15 * sec, 30 * sec},
		CollectTime: 450 * ms, TakeoverTime: 1500 * ms, ProbeInterval: sec, ProbeTimeout: 2 * sec, TryTime: 2 * sec,
	},
}

// Of returns the timings of a preset, with those of WAN for an empty name.
func Of(n Name) (t Timings, ok bool) {
	t, ok = presets[cmp.Or(n, WAN)]
	return t, ok
}

// Check returns an error for a preset that does not exist.
func (n Name) Check() error {
	if _, ok := Of(n); !ok {
		return &name.Error{Field: Flag, Problem: fmt.Sprintf("%.32q, must be local, lan or wan", string(n))}
	}
	return nil
}

// timing is a row of the table of presets.
type timing struct {
	name    string // of a setting, unless it is of gossip
	meaning string
	of      func(*Timings, *memberlist.Config) time.Duration
}

// table has a row for every timing.
var table = []timing{
	{"collect-time", "how long the leader of a redistribution waits for all reachable sites: above the longest round trip with its syncs", func(t *Timings, _ *memberlist.Config) time.Duration { return t.CollectTime }},
	{"takeover-time", "how long a redistribution may stand still before a site asks or takes over: at least three times collect-time", func(t *Timings, _ *memberlist.Config) time.Duration { return t.TakeoverTime }},
	{"probe-interval", "how often the round trip to each site is measured", func(t *Timings, _ *memberlist.Config) time.Duration { return t.ProbeInterval }},
	{"probe-timeout", "how long the answer to a probe may take: several of the longest round trips", func(t *Timings, _ *memberlist.Config) time.Duration { return t.ProbeTimeout }},
	{"try-time", "how long a site may take for a request, beyond its wait, before another site is asked", func(t *Timings, _ *memberlist.Config) time.Duration { return t.TryTime }},
	{"", "gossip: interval of messages", func(_ *Timings, g *memberlist.Config) time.Duration { return g.GossipInterval }},
	{"", "gossip: interval of probes", func(_ *Timings, g *memberlist.Config) time.Duration { return g.ProbeInterval }},
	{"", "gossip: how long the answer to a probe may take", func(_ *Timings, g *memberlist.Config) time.Duration { return g.ProbeTimeout }},
	{"", "gossip: interval of exchanges of the whole state", func(_ *Timings, g *memberlist.Config) time.Duration { return g.PushPullInterval }},
	{"", "gossip: time-out of a connection", func(_ *Timings, g *memberlist.Config) time.Duration { return g.TCPTimeout }},
	{"", "gossip: first pause of calls to the seeds", func(t *Timings, _ *memberlist.Config) time.Duration { return t.Seeds.First }},
	{"", "gossip: longest pause of calls to the seeds, while alone", func(t *Timings, _ *memberlist.Config) time.Duration { return t.Seeds.Most }},
	{"", "gossip: interval of calls to the seeds", func(t *Timings, _ *memberlist.Config) time.Duration { return t.Seeds.Steady }},
}

// Values returns the settings that a preset sets.
func Values(n Name) map[string]time.Duration {
	values := make(map[string]time.Duration)
	if t, ok := Of(n); ok {
		for _, row := range table {
			if row.name != "" {
				values[row.name] = row.of(&t, nil)
			}
		}
	}
	return values
}

// Var defines the flag of a timing, with the value of WAN as its default.
func Var(f *pflag.FlagSet, p *time.Duration, name string) {
	for _, row := range table {
		if row.name == name {
			f.DurationVar(p, name, Values(WAN)[name], row.meaning+"; the preset sets it")
		}
	}
}

// Between returns an error for a timing that is neither 0 nor from 1ms to 1m.
func Between(field string, d time.Duration) error {
	if d != 0 && (d < time.Millisecond || d > time.Minute) {
		return &name.Error{Field: field, Problem: fmt.Sprintf("%v, must be from 1ms to 1m", d)}
	}
	return nil
}

//go:embed reference.txt
var reference string

// Reference writes the table of presets as a section of documentation.
func Reference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(reference + "| key | " + string(WAN) + " | " + string(LAN) + " | " + string(Local) + " |\n|---|---|---|---|\n")
	for _, row := range table {
		cell := row.meaning
		if row.name != "" {
			cell = "`" + row.name + "`"
		}
		fmt.Fprintf(&b, "| %s |", cell)
		for _, n := range []Name{WAN, LAN, Local} {
			t := presets[n]
			fmt.Fprintf(&b, " %v |", row.of(&t, t.Gossip()))
		}
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the table of presets: %w", err)
	}
	return nil
}
