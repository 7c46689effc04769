package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/sim"
)

// simViolation is a violation in the output of --json.
type simViolation struct {
	Seed      uint64        `json:"seed"`
	Invariant sim.Invariant `json:"invariant"`
	Event     uint64        `json:"event"`
	Millis    int64         `json:"at_ms"`
	Detail    string        `json:"detail"`
	Replay    string        `json:"replay"`
}

// simRefused is a seed refused as trivial.
type simRefused struct {
	Seed uint64 `json:"seed"`
	Why  string `json:"why"`
}

// simServing shows whether sites serve while an instance runs.
type simServing struct {
	// WaitedThoughKept counts requests that waited for an instance although their
	// site kept enough tokens for them.
	WaitedThoughKept int `json:"waited_though_kept"`
	// WaitingShareSpare and WaitingShareAll are the shares of all acquires that
	// waited for an instance: at sites that offer their spare tokens, and at sites
	// that offer all tokens.
	WaitingShareSpare float64 `json:"waiting_share_spare"`
	WaitingShareAll   float64 `json:"waiting_share_all"`
	// OwnOfferShareSpare and OwnOfferShareAll are the shares that waited only
	// because their own site had set tokens aside.
	OwnOfferShareSpare float64 `json:"waiting_for_own_offer_share_spare"`
	OwnOfferShareAll   float64 `json:"waiting_for_own_offer_share_all"`
}

func serving(r *sim.Report) simServing {
	return simServing{
		r.WaitedThoughKept, r.WaitingShare(sim.OfferSpare), r.WaitingShare(sim.OfferAll),
		r.OwnOfferShare(sim.OfferSpare), r.OwnOfferShare(sim.OfferAll),
	}
}

// simSeed is a seed in the output of --per-seed.
type simSeed struct {
	Seed uint64 `json:"seed"`
	Hash string `json:"hash"`
	simServing
}

// simFeature counts a feature of requests.
type simFeature struct {
	Name  string `json:"name"`
	Total int    `json:"total"`
	// Least is the smallest count of a seed. It skips trivial seeds. For a feature
	// of trees it skips seeds without a tree, and for a feature of partitions seeds
	// without partitions.
	Least int `json:"least"`
}

// feature adds the features of a seed.
func (r *simResult) feature(all *sim.Report, trivial bool) {
	for i, f := range all.Features() {
		if i == len(r.Features) {
			r.Features = append(r.Features, simFeature{Name: f.Name, Least: math.MaxInt})
		}
		r.Features[i].Total += f.Count
		if !trivial && (!f.Trees || all.Trees > 0) && (!f.Divided || all.Divided > 0) {
			r.Features[i].Least = min(r.Features[i].Least, f.Count)
		}
	}
}

func hash(n uint64) string { return fmt.Sprintf("%016x", n) }

// simResult is the line that --json prints.
type simResult struct {
	Mode  string `json:"mode"`
	Offer string `json:"offer"`
	// Strategy is empty if each seed chose a strategy for each site.
	Strategy   string `json:"strategy"`
	Sites      int    `json:"sites"`
	First      uint64 `json:"first"`
	Seeds      uint64 `json:"seeds"`
	Trivial    uint64 `json:"trivial"`
	Violations int    `json:"violations"`
	// Invariant is the invariant of the first violation; empty for none.
	Invariant       sim.Invariant `json:"invariant"`
	Events          uint64        `json:"events"`
	EventsPerSecond float64       `json:"events_per_second"`
	Simulated       float64       `json:"simulated_seconds"`
	Elapsed         float64       `json:"elapsed_seconds"`
	Processor       float64       `json:"processor_seconds"`
	Workers         int           `json:"workers"`
	// Speedup is simulated time over the elapsed time of all workers, SpeedupCore
	// over the processor time of the whole program.
	Speedup     float64 `json:"speedup"`
	SpeedupCore float64 `json:"speedup_per_core"`
	Requests    int     `json:"requests"`
	// Hash is the hash of all seeds. It does not depend on the number of workers.
	Hash string `json:"hash"`
	simServing
	// PerSeed is in the order of the seeds.
	PerSeed []simSeed          `json:"per_seed,omitempty"`
	Shares  map[string]float64 `json:"shares"`
	// Switches counts the decided changes of the protocol mode.
	Switches int `json:"mode_switches"`
	// Redistributions counts redistributions begun, decided and aborted.
	Redistributions map[string]int `json:"redistributions"`
	Faults          map[string]int `json:"faults"`
	NotHit          []string       `json:"faults_not_hit"`
	// Transfers counts rounds of direct transfers, transfers sent, tokens received,
	// and crashes of a site with a transfer under way. FaultsUnderWay counts the
	// faults while a transfer was under way at any site.
	Transfers      map[string]int `json:"transfers"`
	FaultsUnderWay map[string]int `json:"faults_under_way"`
	NotHitUnderWay []string       `json:"faults_not_hit_under_way"`
	NotCovered     []string       `json:"faults_not_covered"`
	// Nodes counts the sites of several nodes, the batches that their logs made durable,
	// those without an answer, take-overs by other nodes, attempts of nodes no longer
	// active, and copies for nodes behind the log.
	Nodes map[string]int `json:"nodes"`
	// Features count the features of requests, in the order of sim.Report.Features.
	Features []simFeature   `json:"features"`
	Failures []simViolation `json:"failures"`
	// Refused are the trivial seeds, in ascending order.
	Refused []simRefused `json:"refused"`

	total sim.Report
	hash  uint64
}

// add adds the runs of a seed.
func (r *simResult) add(o *simOptions, run sim.Options, reports []sim.Report, v *sim.Violation) {
	r.Seeds++
	var all sim.Report
	var sum uint64
	trivial := ""
	for i := range reports {
		all.Add(reports[i])
		sum += reports[i].Hash
		trivial = cmp.Or(trivial, reports[i].Trivial(run))
	}
	r.total.Add(all)
	r.feature(&all, trivial != "")
	r.hash += sum
	if o.perSeed {
		r.PerSeed = append(r.PerSeed, simSeed{run.Seed, hash(sum), serving(&all)})
	}
	if v == nil {
		if run.Long && trivial != "" {
			r.Trivial++
			r.Refused = append(r.Refused, simRefused{run.Seed, trivial})
		}
		return
	}
	r.Violations++
	if r.Invariant == "" {
		r.Invariant = v.Invariant
	}
	replay := fmt.Sprintf("samya-lab sim --protocol %s --sites %d --faults %s --first %d --seeds 1", o.mode, o.sites, o.faults, v.Seed)
	if o.short {
		replay += " --short"
	}
	if o.joins {
		replay += " --joins"
	}
	if o.leaves {
		replay += " --drains"
	}
	if o.rates {
		replay += " --rates"
	}
	if o.losses {
		replay += " --losses"
	}
	if !o.upgrades {
		replay += " --upgrades=false"
	}
	if !o.trees {
		replay += " --trees=false"
	}
	if o.bounds != 0 {
		replay += fmt.Sprintf(" --bounds %d", o.bounds)
	}
	if run.Nodes != "" && run.Nodes != "mixed" {
		replay += " --several " + run.Nodes
	}
	if run.Offer != "" {
		replay += " --offer " + run.Offer
	}
	if run.Strategy != "" {
		replay += " --strategy " + run.Strategy
	}
	detail := v.Error()
	if o.seeds == 1 {
		detail += "\n" + v.Trace
	}
	r.Failures = append(r.Failures, simViolation{v.Seed, v.Invariant, v.Event, v.Millis, detail, replay})
}

// sum computes the output from the counts.
func (r *simResult) sum(elapsed time.Duration, faults sim.FaultSet) {
	t := &r.total
	r.Elapsed, r.Simulated = elapsed.Seconds(), t.Simulated().Seconds()
	r.Events, r.EventsPerSecond = t.Events, float64(t.Events)/r.Elapsed
	r.Speedup = r.Simulated / r.Elapsed
	r.SpeedupCore = r.Simulated / r.Processor
	r.Requests, r.Switches = t.Requests, t.Switches
	r.Hash, r.simServing = hash(r.hash), serving(t)
	slices.SortFunc(r.Refused, func(a, b simRefused) int { return cmp.Compare(a.Seed, b.Seed) })
	slices.SortFunc(r.PerSeed, func(a, b simSeed) int { return cmp.Compare(a.Seed, b.Seed) })
	r.Shares = map[string]float64{
		"granted":       share(t.Grants, t.Grants+t.Refusals),
		"refused":       share(t.Refusals, t.Grants+t.Refusals),
		"redistributed": share(t.Redistributed, t.Grants+t.Refusals),
	}
	r.Redistributions = map[string]int{
		"begun": t.Begun, "decided": t.Instances + t.StarDecided, "aborted": t.Failed,
		"decided_majority": t.Instances, "decided_star": t.StarDecided, "aborted_star": t.StarAborted,
	}
	r.Transfers = map[string]int{
		"begun": t.Rounds, "brought": t.RoundsBrought, "short": t.RoundsShort, "sent": t.Transfers,
		"tokens": t.Transferred, "crashes_under_way": t.CrashesUnderWay,
	}
	r.Nodes = map[string]int{
		"sites": t.Several, "batches": t.NodeCommits, "unknown": t.UnknownCommits,
		"take_overs": t.TakeOvers, "fenced": t.Fenced, "copies": t.NodeCopies,
	}
	for i := range r.Features {
		if f := &r.Features[i]; f.Least == math.MaxInt { // all seeds are trivial
			f.Least = 0
		}
	}
	r.Faults, r.FaultsUnderWay = make(map[string]int), make(map[string]int)
	for _, f := range faults.List() {
		r.Faults[f.String()], r.FaultsUnderWay[f.String()] = t.Faults[f], t.FaultsUnderWay[f]
	}
	if r.Strategy != "instance" && r.Sites != 1 {
		for _, f := range t.MissingUnderWay(faults) {
			r.NotHitUnderWay = append(r.NotHitUnderWay, f.String())
		}
	}
	for _, f := range t.MissingFaults(faults) {
		r.NotHit = append(r.NotHit, f.String())
	}
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// tell prints the result as text.
func (r *simResult) tell(w io.Writer) error {
	var b strings.Builder
	t := &r.total
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-17s"+format+"\n", append([]any{name}, args...)...)
	}
	line("mode", "%s, %d sites, strategy %s", r.Mode, r.Sites, cmp.Or(r.Strategy, "of each site by its seed"))
	line("seeds", "%d from %d on, %d refused as trivial", r.Seeds, r.First, r.Trivial)
	line("events", "%d, %.0f a second", r.Events, r.EventsPerSecond)
	line("time", "%.0f s simulated in %.1f s: %.0f times real time, %.0f a core", r.Simulated, r.Elapsed, r.Speedup, r.SpeedupCore)
	line("redistributions", "%d begun, %d decided (%d by a majority, %d by their members), %d aborted",
		r.Redistributions["begun"], r.Redistributions["decided"], r.total.Instances, r.total.StarDecided, r.total.Failed)
	line("transfers", "%d rounds begun, %d brought tokens, %d none; %d sent, %d tokens came; %d crashes with one under way",
		t.Rounds, t.RoundsBrought, t.RoundsShort, t.Transfers, t.Transferred, t.CrashesUnderWay)
	line("nodes", "%d sites of several: %d batches logged, %d without an answer, %d take-overs, %d attempts of nodes no longer active refused, %d copies",
		t.Several, t.NodeCommits, t.UnknownCommits, t.TakeOvers, t.Fenced, t.NodeCopies)
	if t.Windows+t.Draws+t.Flows > 0 {
		line("rate quotas", "%d windows begun, %d grants of buckets and sliding windows, %d of keys; %d resets gave back %d tokens",
			t.Windows, t.Flows, t.Keys, t.Resets, t.ResetTokens)
		line("", "%d shares leased, %d renewed, %d inherited, %d ended; their holders granted tokens %d times",
			t.Shares, t.SharesRenewed, t.SharesInherited, t.SharesEnded, t.SharesGranted)
	}
	if r.Switches > 0 {
		line("mode switches", "%d decided", r.Switches)
	}
	line("requests", "%d: of the acquires answered %.1f %% granted, %.1f %% of them all after a redistribution, %.1f %% refused",
		r.Requests, 100*r.Shares["granted"], 100*r.Shares["redistributed"], 100*r.Shares["refused"])
	line("serving", "%d requests waited for an instance though their site kept the tokens", r.WaitedThoughKept)
	line("", "%s", waiting(r.Offer, &r.simServing))
	name := "features"
	for _, f := range r.Features {
		line(name, "%-32s %-10d at least %d a seed", f.Name, f.Total, f.Least)
		name = ""
	}
	name = "faults"
	for _, f := range (sim.AllFaults | sim.DoubleFaults).List() {
		if n, in := r.Faults[f.String()]; in {
			line(name, "%-18v %-10d %d while a transfer was under way", f, n, r.FaultsUnderWay[f.String()])
			name = ""
		}
	}
	if len(r.NotHit) > 0 {
		line("never happened", "%s", strings.Join(r.NotHit, ", "))
	}
	if len(r.NotHitUnderWay) > 0 {
		line("never during", "a transfer: %s", strings.Join(r.NotHitUnderWay, ", "))
	}
	if len(r.NotCovered) > 0 {
		line("not covered", "%s", strings.Join(r.NotCovered, ", "))
	}
	name = "refused"
	for _, seed := range r.Refused {
		line(name, "seed %d: %s", seed.Seed, seed.Why)
		name = ""
	}
	line("violations", "%d", r.Violations)
	for _, v := range r.Failures {
		fmt.Fprintf(&b, "\n%s\nreplay: %s\n", v.Detail, v.Replay)
	}
	for i := range r.PerSeed {
		p := &r.PerSeed[i]
		line("seed", "%d: %d waited though kept; %s", p.Seed, p.WaitedThoughKept, waiting(r.Offer, &p.simServing))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxRefusals bounds the trivial seeds in an error.
const maxRefusals = 10

// refusals names trivial seeds and the reasons.
func (r *simResult) refusals() string {
	var told []string
	for _, seed := range r.Refused[:min(len(r.Refused), maxRefusals)] {
		told = append(told, fmt.Sprintf("seed %d: %s", seed.Seed, seed.Why))
	}
	if left := len(r.Refused) - len(told); left > 0 {
		told = append(told, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(told, "; ")
}

// waiting tells the shares of the acquires that waited.
func waiting(offer string, s *simServing) string {
	spare := fmt.Sprintf("%.2f %% of all acquires waited for one under spare (%.2f %% for their own site's offer)",
		100*s.WaitingShareSpare, 100*s.OwnOfferShareSpare)
	all := fmt.Sprintf("%.2f %% under all (%.2f %%)", 100*s.WaitingShareAll, 100*s.OwnOfferShareAll)
	switch offer {
	case "spare", "all":
		return spare + ", " + all + ": all sites alike"
	case "compare":
		return spare + ", " + all + ": the same seeds, all sites alike"
	default:
		return spare + ", " + all + ": sites of both kinds in one cluster"
	}
}
