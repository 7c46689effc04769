package sim

import (
	"fmt"
	"strings"
	"time"
)

// Report counts the events of a run, or of many.
type Report struct {
	// Hash is a hash of all events: the same for the same seed.
	Hash uint64
	// Events counts the simulated events, Micros is the simulated time in
	// microseconds, with the time after healing.
	Events uint64
	Micros int64

	// Sites is the size of the cluster, 0 in a sum of runs.
	Sites int
	// Requests are acquires and releases, each with all its repeats counted once.
	Requests int
	// Redistributed are the grants that had to wait.
	Grants, Redistributed, Refusals, Releases, Repeats, Reused, Cancels, Overloads int
	// Contradicted are the acquires that came again with the same id and another body
	// while they waited.
	Contradicted int
	// Waited are the acquires that had to wait for an instance, of all Acquires handed
	// over to a site, by the site's offer policy. WaitedThoughKept are the Waited
	// acquires at sites with the tokens meanwhile: the first of them breaks [Serving].
	Acquires, Waited [2]int
	// Reads are the answered reads, of a single entity or of all.
	Reads int
	// ExactReads are the reads of all sites that found a consistent cut. AskedAgain
	// counts how often some sites had to be asked again. WatchStates are the states that
	// watches told.
	ExactReads, AskedAgain, WatchStates int
	// ExactBegun are all exact reads begun: where sites are cut off most of the time
	// hardly any finds a cut.
	ExactBegun       int
	WaitedThoughKept int
	// OwnOffer are the Waited acquires that the tokens left and the tokens set aside by
	// their own site would have served.
	OwnOffer [2]int
	// Begun and Failed count redistributions at their leaders, GaveUp how often
	// a site learned that there are no tokens anywhere.
	Begun, Failed, GaveUp int
	// Instances are the instances that a majority decided, StarDecided the star instances
	// that their members committed. StarAborted had a value and were aborted.
	Instances, StarDecided, StarAborted int
	// Rounds of direct transfers were begun, RoundsBrought have brought tokens,
	// RoundsShort none. Transfers are the transfers sent, Transferred the tokens that
	// have come.
	Rounds, RoundsBrought, RoundsShort, Transfers, Transferred int
	// CrashesUnderWay are the crashes of a site with a transfer under way from or to it.
	CrashesUnderWay                                                int
	CatchUps, Recoveries, Cut                                      int
	Creates, Deletes, Limits, Raises, Lowerings, Unknown, NoQuorum int
	// Switches are the decided changes of the mode to another mode.
	Switches int
	// Joined counts the sites that joined.
	Joined int
	// Drains are the decided drains, Kept those that were cancelled, Left the sites that
	// left. Bequests are the parts of holdings that were handed over, BequestsTaken those
	// that heirs took. LeasesInherited are the leases that heirs took, LeasesMoved the
	// requests told that a lease is at an heir, TurnedAway the requests refused by a site
	// that drains.
	Drains, Kept, Left, Bequests, BequestsTaken, LeasesInherited, LeasesMoved, TurnedAway int
	// Losses are the sites written off, LostServing those that went on serving meanwhile,
	// LostStopped those that heard of it and stopped. WrittenOff counts the decisions of what
	// lost sites held, by entity. Concluded are the star slices that ended with the lower of
	// offer and grant, LostTransfers the transfers dropped, LostBequests the bequests
	// dropped, LostClaims the claims ended as nobody knows.
	Losses, LostServing, LostStopped, WrittenOff, Concluded, LostTransfers, LostBequests, LostClaims int
	// Upgrades are the runs with an upgrade, Exchanges the starts with another build than
	// before, Apart the messages between builds that cannot work together, Unready the
	// raises refused for want of sites.
	Upgrades, Exchanges, Apart, Unready int
	// Failovers are the attempts at other sites, or after the first at the same;
	// ManagersLost are the app managers that ended within an attempt. Undone are the
	// acquires that had run and were undone, Tombstones the acquires that were forbidden
	// to run. Superseded are the attempts refused by that, Expired the attempts refused
	// as too late.
	Failovers, ManagersLost, Undone, Tombstones, Superseded, Expired int
	// Sessions are the runs with sessions, Acknowledged the requests acknowledged there.
	Sessions, Acknowledged int
	// Parked are the releases that were parked, and credited or dropped in the end.
	// Forgotten counts how often a site no longer knew.
	Parked, ParkedCredited, ParkedDropped, Forgotten int
	// Leases are the leases granted; LeasesReturned counts releases of them.
	Leases, LeasesRenewed, LeasesCommitted, LeasesReturned, LeasesExpired, ExpiredWhileDown, NoLease int
	// DebtsPaid counts the debts of sites that ended. Partial counts the grants of less
	// than was asked for, InTurn the grants to an acquire that waited while others did.
	DebtsPaid, Partial, DryRuns, InTurn int
	// MayExceed counts the answers that a limit may be exceeded, AppliedByAll the
	// changes of limits that waited until all sites had applied them.
	MayExceed, AppliedByAll int
	// Passed are the grants to acquires that came after an acquire that went on waiting.
	// Held are the acquires that waited although their site had all tokens they need, as
	// behind another acquire.
	Passed, Held int
	// Windows counts the windows of rate quotas that began at a site after another, Late the
	// times that tokens came from a later window.
	// Flows counts the grants of buckets and sliding windows that are judged, Draws those of
	// volatile rate quotas.
	Windows, Late, Flows, Draws int
	// Keys counts the grants of keys of templates that are judged.
	Keys int
	// DrawsBelow counts the judgements at levels above a draw's, DrawsGiven the releases of drawn
	// tokens.
	DrawsBelow, DrawsGiven int
	// Reserved counts the leases of clients that draw, ReservedEnded their ends, ReservedBack the
	// times that tokens came back from a lease to a rate quota.
	Reserved, ReservedEnded, ReservedBack int
	// Resets counts the resets that sites carried out, ResetTokens the tokens that came back
	// by them. Shares are the leases of share granted, SharesGranted the grants of their
	// holders. SharesEnded counts the ends of shares, also in part.
	Resets, ResetTokens, Shares, SharesRenewed, SharesInherited, SharesEnded, SharesGranted int
	// Trees are the runs with entities that stand below others. Moves are the decided
	// moves below another parent, Prunes the deletions with everything below. Misplaced
	// are the changes refused for where an entity stands or was to stand. GrantsBelow are
	// the grants of an entity with a parent, RefusedAbove the refusals for want of an
	// entity above the entity asked for.
	Trees, Moves, Prunes, Misplaced, GrantsBelow, RefusedAbove int
	// Exceeded are the acquires refused for a limit. ExceededAbove are refused for the
	// limit of an entity above the entity asked for, Outgrown waited until a limit fell.
	Exceeded, ExceededAbove, Outgrown int
	// Batches are the grants of several entities at once.
	Batches, BatchesRefused, BatchesUndone int
	// Bounded are the runs with sites that have bounds of 1 or 2, as far as the seed
	// chooses.
	Bounded int
	// Crowded are the runs with small tables of requests, as far as the seed chooses.
	// CrowdedOut are the requests refused for want of room, CrowdedFull the refused
	// requests that may have found no place at all.
	Crowded, CrowdedOut, CrowdedFull int
	// Careless counts the releases of tokens that no client had, SetAside how often a
	// surplus was set aside.
	Careless, SetAside int
	// Died counts the acquires that were the last of their clients, Cuts the cuts of an
	// operator, Reconciled the reconciliations decided.
	Died, Cuts, Reconciled int
	// Divided are the runs in which sites have partitions. Parted are the requests that
	// partitions served, PartedAcross the served requests of several partitions,
	// PartedPassed the requests that no partition served. FromSlots are the requests
	// served from slots of split entities, each counted for each such entity.
	// Repartitions are the switches to another assignment.
	Divided, Parted, PartedAcross, PartedPassed, FromSlots, Repartitions, Splits int
	// Unvouched counts the requests answered Unvouched, StaleRefused the starts on stale
	// data that ended.
	Unvouched, StaleRefused int
	// LogCommits are the batches that logs made durable, Checkpoints the logs carried
	// over to the end. CleanStops are the stops with a log that was carried over,
	// DamageRefused the refused starts on a damaged log.
	LogCommits, Checkpoints, CleanStops, DamageRefused int
	// Several are the sites that keep their log at several nodes, NodeCommits the batches
	// that their shared store made durable, UnknownCommits the commits without an answer.
	// TakeOvers are the starts on another node than before, Fenced the attempts of nodes
	// that were active to go on, NodeCopies the copies for nodes behind the log.
	Several, NodeCommits, UnknownCommits, TakeOvers, Fenced, NodeCopies int
	// Faults counts the faults that happened, by cell; FaultsUnderWay counts the faults
	// while a direct transfer was under way anywhere.
	Faults, FaultsUnderWay [faultCount]int
}

// Offer policies as they are counted in Acquires and Waited.
const (
	OfferSpare = iota
	OfferAll
)

// acquire counts an acquire handed over to a site.
func (r *Report) acquire(offer string) { r.Acquires[offered(offer)]++ }

// wait counts an acquire that waits.
func (r *Report) wait(offer string, ownOffer bool) {
	r.Waited[offered(offer)]++
	if ownOffer {
		r.OwnOffer[offered(offer)]++
	}
}

func offered(policy string) int {
	if policy == "all" {
		return OfferAll
	}
	return OfferSpare
}

type count struct {
	name string
	n    *int
}

func (r *Report) counts() []count {
	return []count{
		{"requests", &r.Requests},
		{"grants", &r.Grants},
		{"redistributed", &r.Redistributed},
		{"refusals", &r.Refusals},
		{"releases", &r.Releases},
		{"repeats", &r.Repeats},
		{"reused", &r.Reused},
		{"contradicted while waiting", &r.Contradicted},
		{"cancels", &r.Cancels},
		{"overloads", &r.Overloads},
		{"acquires where spare is offered", &r.Acquires[OfferSpare]},
		{"acquires where all is offered", &r.Acquires[OfferAll]},
		{"waits where spare is offered", &r.Waited[OfferSpare]},
		{"waits where all is offered", &r.Waited[OfferAll]},
		{"waits for the own offer where spare is offered", &r.OwnOffer[OfferSpare]},
		{"waits for the own offer where all is offered", &r.OwnOffer[OfferAll]},
		{"reads", &r.Reads},
		{"exact reads begun", &r.ExactBegun},
		{"exact reads", &r.ExactReads},
		{"exact reads that asked again", &r.AskedAgain},
		{"states watched", &r.WatchStates},
		{"begun", &r.Begun},
		{"failed", &r.Failed},
		{"gave up", &r.GaveUp},
		{"instances", &r.Instances},
		{"star decided", &r.StarDecided},
		{"star aborted", &r.StarAborted},
		{"transfer rounds begun", &r.Rounds},
		{"transfer rounds that brought tokens", &r.RoundsBrought},
		{"transfer rounds that brought none", &r.RoundsShort},
		{"transfers sent", &r.Transfers},
		{"transferred tokens", &r.Transferred},
		{"transfers under way at crashes", &r.CrashesUnderWay},
		{"catch-ups", &r.CatchUps},
		{"recoveries", &r.Recoveries},
		{"cut", &r.Cut},
		{"creates", &r.Creates},
		{"deletes", &r.Deletes},
		{"limits", &r.Limits},
		{"raises", &r.Raises},
		{"lowerings", &r.Lowerings},
		{"mode switches decided", &r.Switches},
		{"sites that joined", &r.Joined},
		{"drains", &r.Drains},
		{"drains cancelled", &r.Kept},
		{"sites that left", &r.Left},
		{"bequests", &r.Bequests},
		{"bequests taken", &r.BequestsTaken},
		{"leases inherited", &r.LeasesInherited},
		{"requests for leases at an heir", &r.LeasesMoved},
		{"requests turned away by sites that drain", &r.TurnedAway},
		{"sites written off", &r.Losses},
		{"lost sites that served on", &r.LostServing},
		{"lost sites that stopped", &r.LostStopped},
		{"write-offs of entities", &r.WrittenOff},
		{"star slices concluded", &r.Concluded},
		{"transfers to lost sites dropped", &r.LostTransfers},
		{"bequests to lost sites dropped", &r.LostBequests},
		{"claims on lost sites ended", &r.LostClaims},
		{"runs with an upgrade", &r.Upgrades},
		{"builds exchanged", &r.Exchanges},
		{"messages refused for their versions", &r.Apart},
		{"raises of the version refused", &r.Unready},
		{"unknown", &r.Unknown},
		{"no quorum", &r.NoQuorum},
		{"failovers", &r.Failovers},
		{"app managers lost", &r.ManagersLost},
		{"acquires undone", &r.Undone},
		{"tombstones", &r.Tombstones},
		{"late attempts superseded", &r.Superseded},
		{"runs with sessions", &r.Sessions},
		{"requests acknowledged", &r.Acknowledged},
		{"attempts after their time", &r.Expired},
		{"releases parked", &r.Parked},
		{"parked credited", &r.ParkedCredited},
		{"parked dropped", &r.ParkedDropped},
		{"requests forgotten elsewhere", &r.Forgotten},
		{"leases", &r.Leases},
		{"leases renewed", &r.LeasesRenewed},
		{"leases committed", &r.LeasesCommitted},
		{"leases given back", &r.LeasesReturned},
		{"leases expired", &r.LeasesExpired},
		{"leases expired while down", &r.ExpiredWhileDown},
		{"requests for ended leases", &r.NoLease},
		{"debts paid", &r.DebtsPaid},
		{"told that a limit may be exceeded", &r.MayExceed},
		{"changes of limits applied by all", &r.AppliedByAll},
		{"partial grants", &r.Partial},
		{"dry runs", &r.DryRuns},
		{"grants in turn", &r.InTurn},
		{"grants past one that waits", &r.Passed},
		{"acquires held", &r.Held},
		{"windows begun", &r.Windows},
		{"tokens from later windows", &r.Late},
		{"grants of buckets and sliding windows", &r.Flows},
		{"grants of volatile rate quotas", &r.Draws},
		{"grants of keys", &r.Keys},
		{"grants below rate quotas", &r.DrawsBelow},
		{"releases through rate quotas", &r.DrawsGiven},
		{"tokens reserved", &r.Reserved},
		{"reservations ended", &r.ReservedEnded},
		{"tokens back to rate quotas", &r.ReservedBack},
		{"resets", &r.Resets},
		{"tokens that resets gave back", &r.ResetTokens},
		{"leases of share", &r.Shares},
		{"leases of share renewed", &r.SharesRenewed},
		{"leases of share inherited", &r.SharesInherited},
		{"leases of share ended", &r.SharesEnded},
		{"grants of holders of shares", &r.SharesGranted},
		{"trees", &r.Trees},
		{"moves of entities", &r.Moves},
		{"subtrees deleted", &r.Prunes},
		{"changes refused for the place", &r.Misplaced},
		{"grants below a parent", &r.GrantsBelow},
		{"refusals for want above", &r.RefusedAbove},
		{"acquires of more than a limit", &r.Exceeded},
		{"acquires of more than a limit above", &r.ExceededAbove},
		{"acquires of more than a limit that fell", &r.Outgrown},
		{"grants of several entities", &r.Batches},
		{"refusals of several entities", &r.BatchesRefused},
		{"acquires of several entities undone", &r.BatchesUndone},
		{"releases of what nobody had", &r.Careless},
		{"surpluses set aside", &r.SetAside},
		{"acquires of clients that died", &r.Died},
		{"cuts", &r.Cuts},
		{"reconciliations", &r.Reconciled},
		{"runs with partitions", &r.Divided},
		{"runs with bounds of 1 or 2", &r.Bounded},
		{"runs with small tables of requests", &r.Crowded},
		{"requests refused as the table is nearly full", &r.CrowdedOut},
		{"requests refused as it may be full", &r.CrowdedFull},
		{"served by partitions", &r.Parted},
		{"served across partitions", &r.PartedAcross},
		{"passed by partitions", &r.PartedPassed},
		{"served from split slots", &r.FromSlots},
		{"repartitions", &r.Repartitions},
		{"entities split", &r.Splits},
		{"unvouched", &r.Unvouched},
		{"stale starts refused", &r.StaleRefused},
		{"batches logged", &r.LogCommits},
		{"checkpoints", &r.Checkpoints},
		{"stops with nothing in the log", &r.CleanStops},
		{"starts on a damaged log refused", &r.DamageRefused},
		{"sites of several nodes", &r.Several},
		{"batches logged for several nodes", &r.NodeCommits},
		{"batches without an answer of the log", &r.UnknownCommits},
		{"take-overs by other nodes", &r.TakeOvers},
		{"attempts of nodes no longer active", &r.Fenced},
		{"copies for nodes behind the log", &r.NodeCopies},
	}
}

// Add adds the counts of another run.
func (r *Report) Add(o Report) {
	mine := r.counts()
	for i, c := range o.counts() {
		*mine[i].n += *c.n
	}
	for f, n := range o.Faults {
		r.Faults[f] += n
		r.FaultsUnderWay[f] += o.FaultsUnderWay[f]
	}
	r.WaitedThoughKept += o.WaitedThoughKept
	r.Events += o.Events
	r.Micros += o.Micros
}

// Simulated returns the simulated time.
func (r *Report) Simulated() time.Duration { return time.Duration(r.Micros) * time.Microsecond }

// Missing names the counts that are zero and that any protocol and strategy should raise.
func (r *Report) Missing() []string {
	var none []string
	for _, c := range r.counts() {
		some := strings.HasPrefix(c.name, "star ") || strings.HasPrefix(c.name, "mode ") || strings.HasPrefix(c.name, "transfer") ||
			c.name == "requests forgotten elsewhere"
		if *c.n == 0 && !some {
			none = append(none, c.name)
		}
	}
	return none
}

// WaitingShare is the part of the acquires that waited for an instance at sites
// of an offer policy: OfferSpare or OfferAll.
func (r *Report) WaitingShare(offer int) float64 { return r.ofAcquires(&r.Waited, offer) }

// OwnOfferShare is the part of the acquires that waited only because their own
// site, of an offer policy, had set tokens aside.
func (r *Report) OwnOfferShare(offer int) float64 { return r.ofAcquires(&r.OwnOffer, offer) }

func (r *Report) ofAcquires(n *[2]int, offer int) float64 {
	if r.Acquires[offer] == 0 {
		return 0
	}
	return float64(n[offer]) / float64(r.Acquires[offer])
}

// MissingFaults lists the faults of a set that never happened.
func (r *Report) MissingFaults(set FaultSet) []Fault {
	var none []Fault
	for _, f := range set.List() {
		if r.Faults[f] == 0 {
			none = append(none, f)
		}
	}
	return none
}

// MissingUnderWay lists the faults of a set that never happened while a direct transfer
// was under way. It leaves out ClockDrift, set before, and ClockStep, made once a site at
// most.
func (r *Report) MissingUnderWay(set FaultSet) []Fault {
	var none []Fault
	for _, f := range set.List() {
		if r.FaultsUnderWay[f] == 0 && f != ClockDrift && f != ClockStep {
			none = append(none, f)
		}
	}
	return none
}

// A long run does at least so much, or is trivial. Faults of single messages
// do not count.
const (
	minTime      = 120 * second
	minRequests  = 2000
	minInstances = 10
	minFaults    = 10
	minFeature   = 5
)

// Trivial tells why a long run shows too little; "" if it does not.
func (r *Report) Trivial(o Options) string {
	set := o.Faults
	if set == 0 {
		set = AllFaults
	}
	if o.Calm {
		set = 0
	}
	if why := r.trivial(set); why != "" {
		return why
	}
	if !o.Calm && r.Sites != 1 {
		if why := r.features(); why != "" {
			return why
		}
	}
	if o.Strategy != instanceStrategy && r.Sites != 1 && set&(1<<Crash|1<<CrashMidEffects) != 0 && r.CrashesUnderWay == 0 {
		return "no crash with a direct transfer under way"
	}
	return ""
}

// Feature counts how often a run shows a feature of requests.
type Feature struct {
	Name  string
	Count int
	// Trees says that only runs with a tree show it, Divided that only runs with
	// partitions show it.
	Trees, Divided bool
}

// Features lists the features that a long run has to show, in a fixed order.
func (r *Report) Features() []Feature {
	return []Feature{
		{Name: "attempts at other sites", Count: r.Failovers},
		{Name: "acquires undone", Count: r.Undone},
		{Name: "tombstones", Count: r.Tombstones},
		{Name: "attempts refused for a later one", Count: r.Superseded},
		{Name: "attempts after their time", Count: r.Expired},
		{Name: "parked releases settled", Count: r.ParkedCredited + r.ParkedDropped},
		{Name: "leases", Count: r.Leases},
		{Name: "leases renewed", Count: r.LeasesRenewed},
		{Name: "leases committed", Count: r.LeasesCommitted},
		{Name: "leases given back", Count: r.LeasesReturned},
		{Name: "leases expired", Count: r.LeasesExpired},
		{Name: "debts paid", Count: r.DebtsPaid},
		{Name: "partial grants", Count: r.Partial},
		{Name: "dry runs", Count: r.DryRuns},
		{Name: "grants in turn", Count: r.InTurn},
		{Name: "grants past one that waits", Count: r.Passed},
		{Name: "exact reads begun", Count: r.ExactBegun},
		{Name: "states watched", Count: r.WatchStates},
		{Name: "acquires of more than a limit", Count: r.Exceeded},
		{Name: "acquires of more than a limit above", Count: r.ExceededAbove, Trees: true},
		{Name: "grants of several entities", Count: r.Batches},
		{Name: "refusals of several entities", Count: r.BatchesRefused},
		{Name: "moves of entities", Count: r.Moves, Trees: true},
		{Name: "subtrees deleted", Count: r.Prunes, Trees: true},
		{Name: "grants below a parent", Count: r.GrantsBelow, Trees: true},
		{Name: "refusals for want above", Count: r.RefusedAbove, Trees: true},
		{Name: "requests served by partitions", Count: r.Parted, Divided: true},
		{Name: "requests passed by partitions", Count: r.PartedPassed, Divided: true},
		{Name: "requests served from split slots", Count: r.FromSlots, Divided: true},
		{Name: "repartitions", Count: r.Repartitions, Divided: true},
		{Name: "entities split", Count: r.Splits, Divided: true},
	}
}

// features tells which feature of requests a run shows too little; "" for none.
func (r *Report) features() string {
	for _, f := range r.Features() {
		if f.Count < minFeature && (!f.Trees || r.Trees > 0) && (!f.Divided || r.Divided > 0) {
			return fmt.Sprintf("%d %s, below %d", f.Count, f.Name, minFeature)
		}
	}
	return ""
}

func (r *Report) trivial(set FaultSet) string {
	faults := 0
	for _, f := range set.List() {
		if f < Drop || f > Delay {
			faults += r.Faults[f]
		}
	}
	instances := r.Instances + r.StarDecided + r.RoundsBrought
	switch {
	case r.Micros < minTime:
		return fmt.Sprintf("%v simulated, below %d s", r.Simulated(), minTime/second)
	case r.Requests < minRequests:
		return fmt.Sprintf("%d requests, below %d", r.Requests, minRequests)
	case instances < minInstances && r.Sites != 1:
		return fmt.Sprintf("%d redistributions, below %d", instances, minInstances)
	case faults < minFaults && set&^(1<<Drop|1<<Duplicate|1<<Reorder|1<<Delay|1<<ClockDrift) != 0:
		return fmt.Sprintf("%d faults, below %d", faults, minFaults)
	case r.Grants == 0 || r.Refusals == 0 || r.Redistributed == 0 && r.Sites != 1:
		return fmt.Sprintf("%d grants, %d refusals, %d redistributed", r.Grants, r.Refusals, r.Redistributed)
	}
	return ""
}

// String lists the counts.
func (r *Report) String() string {
	var b strings.Builder
	for i, c := range r.counts() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", c.name, *c.n)
	}
	for f, n := range r.Faults {
		fmt.Fprintf(&b, ", %v %d (%d during transfers)", Fault(f), n, r.FaultsUnderWay[f])
	}
	return b.String()
}
