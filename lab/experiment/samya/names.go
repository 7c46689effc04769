package samya

import (
	"cmp"
	"strings"
)

// The systems. Variations may follow a system of samya, each after a plus.
const (
	transfers       = "transfer"
	transfersAuto   = transfers + "+" + auto
	majority        = "majority"
	star            = "star"
	auto            = "auto"
	paperMajority   = "paper-majority"
	paperStar       = "paper-star"
	escrowHalf      = "escrow-half"
	escrowExact     = "escrow-exact"
	escrowAhead     = "escrow-ahead"
	centralPool     = "central-pool"
	approximate     = "approximate"
	oneRound        = "multipaxsys"
	oneRoundCentral = "multipaxsys-central"
	batched         = "multipaxsys-batched"
	unlimited       = "no-constraint"
	noRedistributes = "no-redistribution"
	oracle          = "oracle"
)

// The variations.
const (
	noForecast   = "no-forecast"
	constant     = "constant-forecast"
	offerAll     = "offer-all"
	reallocation = "grants-" // before the name of a reallocation policy
)

// with returns a system with variations.
func with(system string, variations ...string) string {
	return strings.Join(append([]string{system}, variations...), "+")
}

// titles are the names of the systems in figures and texts.
var titles = map[string]string{
	transfers:       "samya",
	transfersAuto:   "samya, transfers under auto",
	majority:        "samya, majority",
	star:            "samya, star",
	auto:            "samya, auto",
	paperMajority:   "majority, paper's policies",
	paperStar:       "star, paper's policies",
	escrowHalf:      "escrow, borrows half",
	escrowExact:     "escrow, borrows the need",
	escrowAhead:     "escrow, asks all ahead",
	centralPool:     "central pool (Doorman)",
	approximate:     "approximate (Gubernator)",
	oneRound:        "MultiPaxSys",
	oneRoundCentral: "MultiPaxSys, led from Iowa",
	batched:         "MultiPaxSys, batched",
	unlimited:       "No Constraint",
	noRedistributes: "No Redistribution",
	oracle:          "oracle",
}

// title returns the name of a system in figures and texts.
func title(system string) string {
	if name, ok := titles[system]; ok {
		return name
	}
	base, variation, varied := strings.Cut(system, "+")
	name := cmp.Or(titles[base], base)
	if varied {
		name += ", " + strings.NewReplacer("+", ", ", "-", " ").Replace(variation)
	}
	return name
}

// The workloads of the trace.
const (
	fit   = "fit"
	tight = "tight"
	burst = "burst"
	over  = "over"
	batch = "batch"
)

// across returns plays of every system on every workload, otherwise equal to p.
func across(p play, systems, workloads []string) []play {
	var all []play
	for _, w := range workloads {
		for _, s := range systems {
			p.system, p.workload = s, w
			all = append(all, p)
		}
	}
	return all
}

// compare orders plays by demand, then by system.
func (p play) compare(q play) int {
	return cmp.Or(
		cmp.Compare(p.span, q.span), cmp.Compare(p.sites, q.sites), cmp.Compare(p.stretch, q.stretch),
		cmp.Compare(p.workload, q.workload), cmp.Compare(p.seed, q.seed), cmp.Compare(p.clients, q.clients),
		cmp.Compare(p.reads, q.reads), cmp.Compare(p.fault, q.fault), cmp.Compare(p.limit, q.limit), cmp.Compare(p.system, q.system),
	)
}
