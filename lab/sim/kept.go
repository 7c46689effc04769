package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/store"
)

// kept is a site's data as the site itself keeps it: the real store and its log, on a
// simulated disk. The data has to equal the site's Memory. A kept costs as much as all
// else in a run, so it is nil at most sites: they have their Memory alone.
type kept struct {
	n       *node
	r       *rand.Rand
	disk    *simdisk.Disk
	base    *base
	store   *store.Store
	options store.Options
	// stepping is set while the log is being carried over, broken once that has failed.
	stepping, broken bool
	// tried is how many of the batches under way were handed to a log that then failed.
	// Each may be durable, if the batches before it are.
	tried int
	// several, unless nil, are the nodes that the site runs on. disk, base and store are
	// those of the active node.
	several *several
	// restored is the data found when it was opened; nil once the site has started on it.
	restored *stored.Restored
}

// logged is how many of a thousand sites keep their data in a real store.
const logged = 350

func (n *node) newKept() *kept {
	if n.s.r.IntN(1000) >= logged {
		return nil
	}
	r := rand.New(rand.NewPCG(n.s.o.Seed, 0xd15c<<32|uint64(n.i)))
	k := &kept{n: n, r: r, disk: simdisk.New(r)}
	k.base = &base{disk: k.disk}
	k.options = store.Options{
		Cluster: "sim", Site: n.id, Members: n.cfg.Members, Join: n.cfg.Joining, Incarnation: n.durable.Incarnation,
		// In most runs few transactions lie between two checkpoints, which take many
		// steps.
		CheckpointBytes: int64(1000 << k.r.IntN(8)), ChunkBytes: 200 << k.r.IntN(6),
	}
	if n.cfg.Joining {
		k.options.Members = nil
	}
	k.several = k.newSeveral()
	return k
}

// chance is decided by the disk's own lots.
func (k *kept) chance(thousandths int) bool { return k.r.IntN(1000) < thousandths }

// fails decides whether a fault that the run has is to happen to the data.
func (k *kept) fails(f Fault, thousandths int) bool {
	s := k.n.s
	return !s.healed && !s.byHand && s.faults.Has(f) && k.chance(thousandths)
}

// open opens the data, over and over if it is cut off, and reads it.
func (k *kept) open() {
	s := k.n.s
	for {
		if k.several.choose(); s.violation != nil {
			return
		}
		if k.fails(CutRecovery, 100) {
			k.disk.CutIn(1 + k.r.IntN(12))
		}
		if k.fails(BaseSync, 150) {
			k.disk.Fail(simdisk.Other, syscall.EIO)
		}
		opened, err := k.openOn()
		switch {
		case errors.Is(err, simdisk.ErrCut):
			s.hit(CutRecovery)
			k.end()
		case errors.Is(err, syscall.EIO):
			s.hit(BaseSync)
			k.end()
		case errors.Is(err, syscall.ENOSPC) && k.disk.Full():
			// Nothing else helps: somebody makes space.
			k.disk.Kill()
			k.disk.Fill(false)
		case err != nil && s.upgrade.tooOld(k.n, err):
			k.end()
		case err != nil:
			s.fail(Recovery, "%s: opening what it stored: %w", k.n.id, err)
			return
		default:
			k.disk.CutIn(0)
			k.disk.Fail(simdisk.Other, nil)
			restored, err := opened.Load()
			if err != nil {
				s.fail(Recovery, "%s: loading what it stored: %w", k.n.id, err)
				return
			}
			k.store, k.restored, k.tried = opened, &restored, 0
			return
		}
	}
}

// openOn opens the data on the disk.
func (k *kept) openOn() (*store.Store, error) {
	if k.several != nil {
		return k.several.open()
	}
	return store.OpenOn(logDir{k.disk}, k.base, k.options)
}

// end ends the users of the disk: the site alone, or the whole machine, which loses
// unsynced writes. One of several nodes may stand still instead.
func (k *kept) end() {
	paused := k.several != nil && k.several.pause()
	k.store, k.restored, k.stepping, k.broken = nil, nil, false, false
	cut := 600
	if k.tried > 1 {
		cut = 950
	}
	switch {
	case paused:
	case k.n.s.byHand:
		k.disk.CutHard()
	case k.n.s.faults.Has(TornWrites) && k.chance(cut):
		k.disk.Cut()
	default:
		k.disk.Kill()
	}
}

// failNext has the disk fail in the next commit, and reports whether it will.
func (k *kept) failNext() bool {
	if k == nil {
		return false
	}
	if k.several != nil {
		k.several.unknown = true
		return true
	}
	if k.chance(300) {
		k.disk.Fail(simdisk.Write, syscall.EIO)
	} else {
		k.disk.Fail(simdisk.Sync, syscall.EIO)
	}
	return true
}

// commit makes the records of a batch durable and reports whether it could.
func (k *kept) commit(r *stored.Records) bool {
	if k == nil || r.Empty() {
		return true
	}
	s := k.n.s
	err := k.store.Commit(r)
	if k.several != nil {
		k.several.unknown = false
	}
	switch {
	case err == nil && !k.disk.Failing():
		s.report.LogCommits++
		if k.several != nil {
			s.report.NodeCommits++
		}
		return true
	case errors.Is(err, errUnknown):
		s.hit(SyncError)
		s.report.UnknownCommits++
	case err == nil && versionOnly(r):
		// The log was not written.
		return true
	case errors.Is(err, syscall.EIO):
		s.hit(SyncError)
	case err == nil:
		s.fail(Recovery, "%s: a commit that the disk did not write is acknowledged", k.n.id)
	case !k.gone(err):
		s.fail(Recovery, "%s: committing: %w", k.n.id, err)
	}
	k.tried = 1
	return false
}

// versionOnly reports whether a batch has nothing but a version, which the store does not
// keep in the log.
func versionOnly(r *stored.Records) bool {
	rest := *r
	rest.Version = 0
	return r.Version != 0 && rest.Empty()
}

// failed reports whether the log takes no more.
func (k *kept) failed() bool { return k != nil && (k.disk.Dead() || k.tried > 0 || k.broken) }

// take hands the data to a site that starts. It may open the data again before: nothing
// has changed.
func (k *kept) take() stored.Restored {
	if k.restored != nil && k.fails(CutRecovery, 150) {
		k.end()
		k.open()
		if k.n.s.violation != nil {
			return stored.Restored{}
		}
		if err := k.same(); err != nil {
			k.n.s.fail(Recovery, "%s: opened again, its data is not what was durable: %w", k.n.id, err)
			return stored.Restored{}
		}
	}
	if k.restored == nil {
		if k.open(); k.n.s.violation != nil {
			return stored.Restored{}
		}
	}
	restored := *k.restored
	k.restored = nil
	return restored
}

// stop does a site's last work on its data. A site told to stop carries the log over and
// closes it; any other writes more of the batches under way.
func (k *kept) stop(batches []*core.Effects) {
	if k == nil || k.failed() {
		return
	}
	s := k.n.s
	switch {
	case s.byHand:
	case k.n.stopping:
		if k.fails(CutCheckpoint, 200) {
			k.disk.CutIn(1 + k.r.IntN(8))
		}
		switch err := k.store.Close(); {
		case errors.Is(err, simdisk.ErrCut):
			s.hit(CutCheckpoint)
		case errors.Is(err, syscall.EIO):
			// A call that was to fail next.
		case err != nil && !k.gone(err):
			s.fail(Recovery, "%s: closing its data: %w", k.n.id, err)
		case err == nil:
			s.report.CleanStops++
		}
	default:
		k.tear(batches)
	}
}

// gone reports whether an error comes from a full disk, or from a loss of power.
func (k *kept) gone(err error) bool {
	if errors.Is(err, syscall.ENOSPC) && k.disk.Full() {
		k.n.s.hit(FullDisk)
		return true
	}
	return errors.Is(err, simdisk.ErrCut)
}

// tear hands batches to the log of a site that is about to crash, and may sync some of
// them. The power may go at any call.
func (k *kept) tear(batches []*core.Effects) {
	if k.n.tearAt == 0 && !k.fails(TornWrites, 900) {
		return
	}
	if k.chance(300) {
		k.disk.CutIn(1 + k.r.IntN(4))
	}
	for _, b := range batches {
		if b.Records.Empty() {
			k.tried++
			continue
		}
		k.tried++
		err := k.store.Append(&b.Records)
		if err == nil && k.chance(200) {
			err = k.store.Sync()
		}
		if err != nil {
			// EIO comes from a call that was to fail next.
			if !k.gone(err) && !errors.Is(err, syscall.EIO) {
				k.n.s.fail(Recovery, "%s: writing to the log: %w", k.n.id, err)
			}
			break
		}
	}
	if k.tried > 0 {
		k.n.s.hit(TornWrites)
	}
}

// maintain does a site's background work on its data: a part of a checkpoint now and
// then. It reports whether the site lives.
func (k *kept) maintain() bool {
	if k == nil || k.n.stale != nil {
		return true
	}
	s := k.n.s
	if k.several.work(); s.violation != nil {
		return false
	}
	if !k.stepping && k.store.Stats().Backlog < k.options.CheckpointBytes && !k.chance(5) || !k.chance(300) {
		return true
	}
	for range 1 + k.r.IntN(4) {
		if k.fails(CutCheckpoint, 10) {
			k.disk.CutIn(1 + k.r.IntN(5))
		}
		if k.fails(BaseSync, 30) {
			k.disk.Fail(simdisk.Other, syscall.EIO)
		}
		var err error
		k.stepping, err = k.store.Step()
		k.disk.Fail(simdisk.Other, nil)
		switch {
		case errors.Is(err, syscall.EIO):
			s.hit(BaseSync)
			k.broken = true
			k.n.crash()
			return false
		case errors.Is(err, simdisk.ErrCut):
			s.hit(CutCheckpoint)
			fallthrough
		case err != nil && k.gone(err):
			k.n.crash()
			return false
		case err != nil:
			s.fail(Recovery, "%s: carrying the log over: %w", k.n.id, err)
			return false
		case !k.stepping:
			k.disk.CutIn(0)
			s.report.Checkpoints++
			return true
		}
	}
	k.disk.CutIn(0)
	return true
}

// recover opens the data of a site that has ended. It takes into the model which of the
// batches under way, in order, are durable. All earlier data has to be there, and nothing
// else.
func (k *kept) recover(under []*core.Effects) (found int) {
	if k == nil {
		return 0
	}
	n := k.n
	k.several.leaves(under)
	under = under[:min(k.tried, len(under))]
	k.end()
	// The log of a node on its own disk may lack any commits: the store has them.
	if k.fails(DamagedLog, 100) && k.several == nil {
		k.damage()
	}
	if k.open(); n.s.violation != nil {
		return 0
	}
	// A version is durable before all else of its batch, and before the batches that were
	// appended and not synced by then.
	if v := k.restored.Version; slices.ContainsFunc(under, func(b *core.Effects) bool { return b.Records.Version == v }) {
		n.durable.Version = v
	}
	for found < len(under) {
		r := &under[found].Records
		// A batch without a number is there if a later batch is, or if the rest differs.
		if k.restored.Commits <= n.durable.Commits && !r.Empty() && (r.Commits != 0 || k.same() == nil) {
			break
		}
		if !n.take(under[found]) {
			return found
		}
		found++
	}
	if k.restored.Commits != n.durable.Commits {
		n.s.fail(Recovery, "%s: after a crash its data is at commit %d, durable is %d", n.id, k.restored.Commits, n.durable.Commits)
	}
	if k.chance(compared) {
		if err := k.same(); err != nil {
			n.s.fail(Recovery, "%s: after a crash its data is not what was durable: %w", n.id, err)
		}
	}
	return found
}

// compared is how many of a thousand recoveries are compared whole with the model. In all
// others the sites themselves go by the data found.
const compared = 250

// reopen opens the data once more at the end of a run: it holds all that became
// durable.
func (k *kept) reopen() {
	if k == nil || k.n.s.violation != nil {
		return
	}
	k.end()
	if k.open(); k.n.s.violation != nil {
		return
	}
	if err := k.same(); err != nil {
		k.n.s.fail(Recovery, "%s: in the end its data is not what was durable: %w", k.n.id, err)
	}
}

// same compares the data found with the model.
func (k *kept) same() error {
	want, err := k.n.durable.Load()
	if err != nil {
		return err
	}
	return sameState(want, *k.restored)
}

// damage turns a bit of the log of a site that is down, in a copy. The site must not
// start on the damaged log, unless it loses no more than the batches under way and the
// last transaction. No later write proves the last transaction. Once the bit is turned
// back the site must find all.
func (k *kept) damage() {
	s, n := k.n.s, k.n
	disk := k.disk.Clone(k.r)
	data := k.base.clone(disk)
	names, err := disk.List()
	if err != nil {
		s.fail(Recovery, "%s: listing files: %w", n.id, err)
		return
	}
	name := names[k.r.IntN(len(names))]
	used := disk.Used(name)
	if used == 0 {
		return
	}
	bit := k.r.Int64N(8 * used)
	disk.Flip(name, bit)
	s.hit(DamagedLog)
	found, err := k.commitsOn(disk, data)
	switch {
	case err == nil && found+1 < n.durable.Commits:
		s.fail(Recovery, "%s: with bit %d of %s turned it starts at commit %d, durable is %d", n.id, bit, name, found, n.durable.Commits)
		return
	case err == nil:
		return
	case !errors.Is(err, store.ErrDamaged):
		s.fail(Recovery, "%s: with bit %d of %s turned: %w", n.id, bit, name, err)
		return
	}
	s.report.DamageRefused++
	if disk.Size(name) == 0 {
		s.fail(Recovery, "%s: with bit %d of %s turned it is refused, and the file is gone", n.id, bit, name)
		return
	}
	disk.Flip(name, bit)
	if found, err = k.commitsOn(disk, data); err != nil || found < n.durable.Commits {
		s.fail(Recovery, "%s: after bit %d of %s was turned back it starts at commit %d, durable is %d: %w", n.id, bit, name, found, n.durable.Commits, err)
	}
}

// commitsOn opens data and returns the number of its last commit.
func (k *kept) commitsOn(disk *simdisk.Disk, data *base) (message.Commits, error) {
	opened, err := store.OpenOn(logDir{disk}, data, k.options)
	if err != nil {
		return 0, err
	}
	restored, err := opened.Load()
	return restored.Commits, err
}

// fill makes the disk full for a while, or gives it space again.
func (k *kept) fill(full bool) {
	if k == nil {
		return
	}
	k.disk.Fill(full)
	if k.several != nil && !full {
		k.several.empty()
	}
}
