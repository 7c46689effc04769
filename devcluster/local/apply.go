package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
)

// ErrBusy says that another command changes the cluster of the directory.
var ErrBusy = errors.New("another command is changing this cluster")

// ErrMembers says that the configuration lacks sites of the cluster that are not told to
// leave, or moves some to other addresses.
var ErrMembers = errors.New("no site leaves unless told to, and none moves: a region keeps its place in the order of the names")

// Change is a step of [Apply] on a process.
type Change struct {
	// Name is the name of the process. Did is "started", "restarted", "stopped" or
	// "kept"; of a new site of a running cluster "joining", then "joined"; of a site that
	// leaves "leaving", then "left". In between Did is "waits" each time that the site
	// waits for something else: WaitsFor, which is empty otherwise.
	Name, Did, WaitsFor string
}

// Apply brings the cluster to the configuration, and waits until every process is ready.
// It calls told after each change, unless told is nil. After an error the changes done
// stay; the next call goes on from there.
//
// Apply starts etcd before the sites. It restarts running sites in turn and waits until each
// is ready before it restarts the next. It then does the same with app managers. New sites join the running cluster
// after that, which takes an app manager; sites that are lost are written off before. Then
// sites leave in turn: each hands its tokens to another site, stops, and its data is set
// aside. Surplus app managers stop last.
func Apply(ctx context.Context, cfg Config, told func(Change)) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	sum, err := checksum(cfg.Samya)
	if err != nil {
		return err
	}
	etcdSum, err := cfg.findEtcd()
	if err != nil {
		return err
	}
	// Read the state before anything is made in a foreign directory, and again under the
	// lock.
	if _, err := Read(cfg.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the cluster: %w", err)
	}
	release, err := lock(cfg.Dir)
	if err != nil {
		return err
	}
	defer release()
	state, err := Read(cfg.Dir)
	if err != nil {
		return err
	}
	a := &applier{cfg: cfg, sum: sum, etcdSum: etcdSum, state: state, told: told}
	return a.apply(ctx)
}

// applier is a call of [Apply].
type applier struct {
	cfg Config
	// sum and etcdSum are the sums of the two programs.
	sum, etcdSum string
	state        State
	told         func(Change)
	ask          *asker
	// all are the processes that are wanted or leave.
	all []Process
	// waiting is what each site that joins or leaves waited for last.
	waiting map[string]string
}

func (a *applier) apply(ctx context.Context) error {
	if err := a.adopt(); err != nil {
		return err
	}
	l := a.cfg.layout(&a.state)
	wanted := l.wanted
	a.all = slices.Concat(wanted, l.leaving)
	for _, dir := range []string{dataDir, logDir} {
		if err := os.MkdirAll(filepath.Join(a.cfg.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("make the directories of the cluster: %w", err)
		}
	}
	if a.cfg.TLS {
		if err := a.cfg.secure(a.all); err != nil {
			return err
		}
	}
	var err error
	if a.ask, err = newAsker(a.cfg); err != nil {
		return err
	}
	if err := a.switchTLS(ctx); err != nil {
		return err
	}
	for _, kind := range []string{KindEtcd, KindSite, KindAppManager} {
		if kind == KindSite {
			if err := a.startJoining(wanted); err != nil {
				return err
			}
			if err := a.startLeaving(l.leaving); err != nil {
				return err
			}
		}
		if err := a.settle(ctx, slices.DeleteFunc(slices.Clone(wanted), func(p Process) bool {
			return p.Kind != kind || slices.Contains(a.state.Joining, p.site())
		})); err != nil {
			return err
		}
	}
	// A new site serves once all members know of it: it would wait for a lost member.
	var lost, draining []Process
	for _, p := range l.leaving {
		if slices.Contains(a.state.Lost, p.site()) {
			lost = append(lost, p)
		} else {
			draining = append(draining, p)
		}
	}
	if err := a.leave(ctx, wanted, lost); err != nil {
		return err
	}
	if err := a.join(ctx, wanted); err != nil {
		return err
	}
	if err := a.leave(ctx, wanted, draining); err != nil {
		return err
	}
	// Without the sites that have left: their region may need no etcd any more.
	return a.retire(ctx, a.cfg.layout(&a.state).wanted)
}

// adopt checks that the state belongs to the wanted cluster, and completes it.
func (a *applier) adopt() error {
	switch {
	case !a.state.known():
		if len(a.cfg.Leave)+len(a.cfg.Lost) > 0 {
			return fmt.Errorf("%w: leave, lost: a new cluster has no site that leaves", ErrConfig)
		}
		var members []string
		for _, p := range a.cfg.Processes() {
			if p.first() {
				members = append(members, p.Name)
			}
		}
		a.state = State{Version: stateVersion, Cluster: a.cfg.Cluster, Members: members}
	case a.state.Cluster != a.cfg.Cluster:
		return fmt.Errorf("%s holds the cluster %q, not %q: %w", a.cfg.Dir, a.state.Cluster, a.cfg.Cluster, ErrForeign)
	default:
		if err := a.reseat(); err != nil {
			return err
		}
	}
	if err := a.keepsNodes(); err != nil {
		return err
	}
	wanted := a.cfg
	wanted.Runs, wanted.Leave, wanted.Lost, wanted.Drain = nil, nil, nil, false
	a.state.Config = &wanted
	if boot := bootID(); a.state.Boot != boot {
		// No process of the former boot runs. Their run numbers stay.
		for name, r := range a.state.Processes {
			r.PID, r.Start = 0, ""
			a.state.Processes[name] = r
		}
		a.state.Boot = boot
	}
	if a.state.Processes == nil {
		a.state.Processes = make(map[string]Run)
	}
	return a.state.write(a.cfg.Dir)
}

// switchTLS ends all processes if TLS is switched on or off. A restart in turn would not
// do: processes with and without TLS do not understand each other.
func (a *applier) switchTLS(ctx context.Context) error {
	if a.state.TLS == a.cfg.TLS {
		return nil
	}
	if err := a.state.stop(ctx); err != nil {
		return err
	}
	a.state.TLS = a.cfg.TLS
	return a.state.write(a.cfg.Dir)
}

// settle brings the processes of a kind to the wanted list.
func (a *applier) settle(ctx context.Context, wanted []Process) error {
	var missing, outdated []Process
	for _, p := range wanted {
		switch r := a.state.Processes[p.Name]; {
		case !a.state.Runs(p.Name):
			missing = append(missing, p)
		case r.Spec != a.spec(p) || a.cfg.Runs[p.Name] > r.Number:
			outdated = append(outdated, p)
		}
	}
	// A site that goes over to etcd does so at its first node.
	var later []Process
	missing = slices.DeleteFunc(missing, func(p Process) bool {
		is := p.Kind == KindSite && !p.first() && a.goesOver(p.site())
		if is {
			later = append(later, p)
		}
		return is
	})
	others := slices.DeleteFunc(slices.Clone(wanted), func(p Process) bool { return has(outdated, p) || has(later, p) })
	if err := a.startAll(ctx, missing, others); err != nil {
		return err
	}
	for _, p := range others {
		if has(missing, p) {
			a.tell(p.Name, "started")
		} else {
			a.tell(p.Name, "kept")
		}
	}
	for _, p := range a.standbyFirst(ctx, outdated) {
		if err := a.state.Processes[p.Name].stop(ctx, a.state.Boot); err != nil {
			return err
		}
		if err := a.start(p); err != nil {
			return err
		}
		if err := a.ready(ctx, p); err != nil {
			return err
		}
		a.tell(p.Name, "restarted")
	}
	if err := a.startAll(ctx, later, later); err != nil {
		return err
	}
	for _, p := range later {
		a.tell(p.Name, "started")
	}
	return nil
}

func has(all []Process, p Process) bool {
	return slices.ContainsFunc(all, func(o Process) bool { return o.Name == p.Name })
}

// startAll starts missing processes together, as none may be ready without the others, and
// waits until all are ready.
func (a *applier) startAll(ctx context.Context, missing, all []Process) error {
	for _, p := range missing {
		if err := a.start(p); err != nil {
			return err
		}
	}
	group, waiting := errgroup.WithContext(ctx)
	for _, p := range all {
		group.Go(func() error { return a.ready(waiting, p) })
	}
	return group.Wait()
}

// start starts a process and writes its run to the state at once, so that the next
// command knows of it should this command die.
func (a *applier) start(p Process) error {
	program := a.cfg.Samya
	if p.Kind == KindEtcd {
		program = a.cfg.Etcd
	}
	pid, at, err := start(program, a.cfg.Dir, p)
	if err != nil {
		return err
	}
	number := a.cfg.Runs[p.Name]
	if number == 0 {
		number = a.state.Processes[p.Name].Number + 1
	}
	a.state.Processes[p.Name] = Run{Process: p, PID: pid, Start: at, Number: number, Spec: a.spec(p)}
	return a.state.write(a.cfg.Dir)
}

// ready waits until a process serves. It fails if the process ends.
func (a *applier) ready(ctx context.Context, p Process) error {
	r := a.state.Processes[p.Name]
	last := errors.New("no answer yet")
	ended := false
	err := poll(ctx, func() bool {
		if ended = !r.alive(a.state.Boot); ended {
			return true
		}
		err := a.serving(ctx, p)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil
	})
	if ended {
		return fmt.Errorf("%s has ended; its log closes with:\n%s", p.Name, tail(a.cfg.Dir, p.Name))
	}
	if err != nil {
		return fmt.Errorf("wait for %s to be ready (%w): %w", p.Name, last, err)
	}
	return nil
}

// retire stops processes that run and are not wanted, and removes them from the state.
func (a *applier) retire(ctx context.Context, wanted []Process) error {
	for _, name := range a.state.Names() {
		if slices.ContainsFunc(wanted, func(p Process) bool { return p.Name == name }) {
			continue
		}
		if err := a.state.Processes[name].stop(ctx, a.state.Boot); err != nil {
			return err
		}
		if err := os.Remove(logOf(a.cfg.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the log of %s: %w", name, err)
		}
		delete(a.state.Processes, name)
		if err := a.state.write(a.cfg.Dir); err != nil {
			return err
		}
		a.tell(name, "stopped")
	}
	return nil
}

// spec hashes everything whose change makes a running process outdated.
func (a *applier) spec(p Process) string {
	h := sha256.New()
	sum, seeds := a.sum, slices.Index(p.Args, joinFlag)+1
	if p.Kind == KindEtcd {
		sum, seeds = a.etcdSum, -1
	}
	for i, part := range append([]string{sum}, p.Args...) {
		// Seeds are for a start: a process that runs knows the others.
		if i == 0 || i-1 != seeds {
			_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (a *applier) tell(name, did string) {
	if a.told != nil {
		a.told(Change{Name: name, Did: did})
	}
}

// waits tells what a site waits for, unless that was told last.
func (a *applier) waits(name, what string) {
	if a.waiting[name] == what {
		return
	}
	if a.waiting == nil {
		a.waiting = make(map[string]string)
	}
	if a.waiting[name] = what; a.told != nil && what != "" {
		a.told(Change{Name: name, Did: "waits", WaitsFor: what})
	}
}

// checksum returns the SHA-256 of a program, in hexadecimal.
func checksum(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
