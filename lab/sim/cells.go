package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a cell of the fault table in docs/testing.md.
type Fault uint8

const (
	// Crash ends a site between two events, a fifth of the times after an order to stop.
	Crash Fault = iota
	// CrashMidEffects ends a site between two effects of a batch: before or after
	// its records are durable, between or after its messages and replies.
	CrashMidEffects
	// LostWrites loses batches at a crash that were handed over and not synced, from any of
	// them on.
	LostWrites
	// SyncError has the sync of a batch fail, its records durable or not. The site stops,
	// and starts again later.
	SyncError
	// SlowDisk makes all syncs of a site up to 20 times as slow, for seconds.
	SlowDisk
	// Drop loses a message.
	Drop
	// Duplicate delivers a message again, up to seconds later.
	Duplicate
	// Reorder delivers a message before an earlier message of the same link.
	Reorder
	// Delay holds a message back for up to 10 seconds.
	Delay
	// PartitionFull cuts the sites into two sides.
	PartitionFull
	// PartitionIsolate cuts off a single site.
	PartitionIsolate
	// PartitionOneWay cuts the links between two sides in a single direction.
	PartitionOneWay
	// PartitionBridge cuts the sites into two sides, except for a site that both sides
	// reach.
	PartitionBridge
	// PartitionLinks cuts links at random, each direction by itself.
	PartitionLinks
	// ClockJump sets a site's calendar to another time, up to 10 seconds off.
	ClockJump
	// ClockDrift has a site's clocks run too fast or too slow, by up to 1 %.
	ClockDrift
	// Pause freezes a site for up to 6 seconds: its inputs wait.
	Pause
	// Overload sends a site many more requests at once than it can serve.
	Overload
	// LostReply loses an answer to a client, which asks again.
	LostReply
	// WrongDetector tells a site that sites are up that are down, or the reverse.
	WrongDetector
	// StaleSnapshot starts a site on an older copy of its data, or on none; then on its own.
	StaleSnapshot
	// TornWrites ends a site, or the whole machine, while its log writes batches:
	// some of their sectors are on the disk, in any order.
	TornWrites
	// CutCheckpoint ends a site in any call of a checkpoint, also during an orderly stop.
	CutCheckpoint
	// CutRecovery ends a site while it opens its data, or right after.
	CutRecovery
	// FullDisk fills the disk for up to 20 seconds: the site stops, a start fails, and a start
	// with room finds all.
	FullDisk
	// DamagedLog turns a bit of the log of a site that is down: the start is refused, or loses
	// at most the last transaction, if no later write proves it.
	DamagedLog

	// EmptyBesideOld starts a site on an empty disk and another on an old copy of its
	// data at the same time. The sites that remember either are cut off. Neither serves before
	// it is back on its own disk. Two sites without a commit and no third that answers look
	// like a first start, and serve: not in this cell.
	EmptyBesideOld
	// BaseSync fails a sync while a site carries its log over: the next start may read
	// data that a loss of power takes back later. Nothing acknowledged may be lost.
	BaseSync
	// ClockStep sets a site's calendar 50 seconds ahead while it is down, once. Leases may end
	// early by at most the skew allowed, 20 seconds, and the site refuses requests as expired.
	ClockStep

	faultCount = int(ClockStep) + 1
)

var faultNames = [faultCount]string{
	Crash: "crash", CrashMidEffects: "crash-mid-effects", LostWrites: "lost-writes", SyncError: "sync-error",
	SlowDisk: "slow-disk", Drop: "drop", Duplicate: "duplicate", Reorder: "reorder", Delay: "delay",
	PartitionFull: "partition-full", PartitionIsolate: "partition-isolate", PartitionOneWay: "partition-one-way",
	PartitionBridge: "partition-bridge", PartitionLinks: "partition-links", ClockJump: "clock-jump",
	ClockDrift: "clock-drift", Pause: "pause", Overload: "overload", LostReply: "lost-reply",
	WrongDetector: "wrong-detector", StaleSnapshot: "stale-snapshot", TornWrites: "torn-writes",
	CutCheckpoint: "cut-checkpoint", CutRecovery: "cut-recovery", FullDisk: "full-disk", DamagedLog: "damaged-log",
	EmptyBesideOld: "empty-beside-old", BaseSync: "base-sync", ClockStep: "clock-step",
}

// String returns the name of the cell.
func (f Fault) String() string { return faultNames[f] }

// NotCovered names the cells of the fault table that no run has yet.
func NotCovered() []string { return []string{} }

// FaultSet is a set of faults.
type FaultSet uint32

// AllFaults holds every Fault except DoubleFaults.
const AllFaults = (FaultSet(1)<<faultCount - 1) &^ DoubleFaults

// DoubleFaults are the faults of several parts at once. A run has them only if it asks
// for them by name.
const DoubleFaults FaultSet = 1<<EmptyBesideOld | 1<<BaseSync | 1<<ClockStep

// Has reports whether f is in the set.
func (s FaultSet) Has(f Fault) bool { return s>>f&1 != 0 }

// List returns the faults of the set in their order.
func (s FaultSet) List() []Fault {
	var list []Fault
	for f := range Fault(faultCount) {
		if s.Has(f) {
			list = append(list, f)
		}
	}
	return list
}

// ParseFaults reads "none" or names separated by commas. A name that ends in "*" means
// all names with that beginning; "all" and "double" are AllFaults and DoubleFaults.
func ParseFaults(list string) (FaultSet, error) {
	if list == "none" {
		return 0, nil
	}
	var set FaultSet
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case "all":
			set |= AllFaults
			continue
		case "double":
			set |= DoubleFaults
			continue
		}
		found := false
		prefix, wild := strings.CutSuffix(name, "*")
		for f, known := range faultNames {
			if known == name || wild && strings.HasPrefix(known, prefix) {
				set |= 1 << f
				found = true
			}
		}
		if !found {
			return 0, fmt.Errorf("unknown fault %q; known: all, double, none, %s", name, strings.Join(slices.Clone(faultNames[:]), ", "))
		}
	}
	return set, nil
}

// hit counts a fault that happened, if the run has it.
func (s *sim) hit(f Fault) {
	s.report.Faults[f]++
	if s.observe.underWay > 0 {
		s.report.FaultsUnderWay[f]++
	}
	s.mix(uint64(f) | 1<<40)
}

// fails decides whether a fault that the run has happens now.
func (s *sim) fails(f Fault, thousandths int) bool {
	if s.healed || thousandths == 0 || !s.faults.Has(f) || !s.chance(thousandths) {
		return false
	}
	s.hit(f)
	return true
}
