package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/policy"
)

// A slow disk takes slowFactor times as long, but at most slowest for a sync.
const (
	slowFactor = 20
	slowest    = 400 * millisecond
)

// drain takes a batch from the core, if there may be another under way.
func (n *node) drain() {
	s := n.s
	if len(n.flights) >= s.chances.depth || !n.pending() {
		return
	}
	var batch *core.Effects
	if len(n.spare) > 0 {
		batch, n.spare = n.spare[len(n.spare)-1], n.spare[:len(n.spare)-1]
	} else {
		batch = new(core.Effects)
	}
	n.alone(func() {
		n.core.Drain(batch)
		n.status = n.core.Status()
		if n.parts != nil {
			n.parts.Drained()
		}
	})
	draws, reset := drawsOf(batch), n.resetOf(batch)
	about := note{reset: reset, wall: n.shownBefore()}
	if n.refusing {
		s.observe.barren(n, batch)
	}
	for _, e := range batch.Events {
		switch e.Kind {
		case event.BooksBroken:
			s.fail(Books, "%s: %w", n.id, e.Err)
		case event.ProtocolFault:
			if s.upgrade.leftBehind(n) {
				continue // it says why it does not follow the raise
			}
			s.fail(Sound, "%s: entity %q: protocol fault: %w", n.id, e.Entity, e.Err)
		case event.RedistributionStarted:
			if e.Variant == policy.Direct {
				s.report.Rounds++
			} else {
				s.report.Begun++
			}
			n.began(&e)
		case event.RedistributionApplied:
			if e.Variant == policy.Direct {
				s.report.RoundsBrought++
			}
		case event.RedistributionFailed:
			switch e.Variant {
			case policy.Direct:
				s.report.RoundsShort++
			case policy.Majority:
				n.failed[e.Entity] = s.now
				fallthrough
			default:
				s.report.Failed++
			}
		case event.SurplusFound:
			n.found[e.Entity] = s.now
		case event.GaveUp:
			s.report.GaveUp++
		case event.ClaimGivenUp:
			p := s.opOf(e.Request)
			p.at[n.i].forgotten = true
			s.report.Forgotten++
			if over := n.time().Wall - p.tries.notAfter; p.tries.notAfter != 0 && over < retention/millisecond {
				s.fail(ExactlyOnce, "%s no longer asks about %v, %d ms after its time", n.id, p, over)
			}
		case event.ForecastFellBack:
			s.fail(Sound, "%s: entity %q: %d forecasts were not finite", n.id, e.Entity, e.Count)
		case event.ForecastDropped:
			s.fail(Sound, "%s: entity %q: a stored forecast could not be taken up", n.id, e.Entity)
		}
	}
	if n.stale != nil {
		n.staleBatch(batch)
	} else {
		n.drainedAt = s.events
		s.observe.forgets(n, &batch.Records)
		s.observe.crowded(n, batch)
		if n.swept = n.fed; n.sweeps == 0 && n.status.Missing == 0 {
			n.sweeps = n.fed
		}
		s.observe.granting(n, &batch.Records)
		s.observe.standsStill(n, &batch.Records)
		windows := n.windowsOf()
		if err := n.drained.Commit(&batch.Records); err != nil {
			s.fail(Sound, "%s: %w", n.id, err)
		}
		about.judges = slices.Concat(s.observe.resets(n, reset), s.observe.flowRecords(n, &batch.Records), s.observe.drew(n, draws, &batch.Records, windows))
		n.drainedTo, n.drainedWall = s.now, n.time().Wall
		s.observe.drained(n, batch)
	}
	n.flights, n.notes = append(n.flights, batch), append(n.notes, about)
	took := micros(0)
	if !batch.Records.Empty() {
		took = 1 + s.r.Int64N(s.chances.sync)
		if s.now < n.slowUntil {
			took = min(took*slowFactor, slowest)
		}
	}
	n.lastSync = max(n.lastSync, s.now) + took
	life := n.life
	if len(n.flights) == n.tearAt {
		s.after(0, func() {
			if n.up && n.life == life && n.tearAt > 0 && !n.paused() {
				n.crash()
			}
		})
	}
	s.after(n.lastSync-s.now, func() {
		n.awake(func() {
			if n.up && n.life == life {
				n.synced()
			}
		})
	})
}

// synced makes the oldest batch durable and carries out its effects.
func (n *node) synced() {
	s := n.s
	batch := n.flights[0]
	if n.burns() {
		return
	}
	if n.badSync && !batch.Records.Empty() && (n.stale != nil || !n.kept.failNext()) {
		// Whether the records are on the disk is not known: a crash decides.
		s.hit(SyncError)
		n.crash()
		return
	}
	if !n.persist(batch) {
		// Whether the records are on the disk is not known: a crash decides.
		n.crash()
		return
	}
	n.judgeGrants(0)
	n.flights, n.notes = n.flights[1:], n.notes[1:]
	n.toldVersions(batch.Events)
	if n.burns() {
		return
	}
	for i := range batch.Messages {
		n.leaving = batch.Messages[i+1:]
		s.send(n, batch.Messages[i])
		if n.burns() {
			return
		}
	}
	for _, r := range batch.Replies {
		s.observe.reply(n, r)
		if n.burns() {
			return
		}
	}
	batch.Reset()
	n.spare = append(n.spare, batch)
	if n.kept.maintain() {
		n.settle()
	}
}

// persist makes the records of a batch durable and reports whether it could.
func (n *node) persist(batch *core.Effects) bool {
	if n.stale != nil {
		return n.stale.Commit(&batch.Records) == nil
	}
	return n.kept.commit(&batch.Records) && n.take(batch)
}

// take takes the records of a batch that is durable into the model.
func (n *node) take(batch *core.Effects) bool {
	s := n.s
	s.observe.note = n.noteOf(batch)
	s.observe.requests(n, &batch.Records)
	s.observe.counted(n, &batch.Records)
	if batch.Records.Clock != nil {
		n.clockStored = s.now
	}
	n.drainedBefore = n.durable.leaves(n.id)
	err := n.durable.Commit(&batch.Records)
	if err == nil && n.other != nil {
		err = n.other.Commit(&batch.Records)
	}
	if err != nil {
		s.fail(Sound, "%s: committing: %w", n.id, err)
		return false
	}
	s.observe.raisedAlone(n, batch)
	s.observe.durable(n, &batch.Records)
	return true
}

// burns crashes the site between two effects if its time has come.
func (n *node) burns() bool {
	if n.fuse == 0 {
		return false
	}
	if n.fuse--; n.fuse > 0 {
		return false
	}
	n.s.hit(CrashMidEffects)
	n.crash()
	return true
}
