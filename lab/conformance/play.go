package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

const (
	// patience bounds every wait for something that takes far less.
	patience = 45 * time.Second
	// every is the time between two calls of an until.
	every = 100 * time.Millisecond
)

// Results are the problems of rows by client; empty: the client keeps the promise.
type Results map[string]map[string]string

// Bench is a cluster and the drivers that play against it.
type Bench struct {
	// Cluster has the processes to which faults are done, and Proxies the proxies that are
	// made mute.
	Cluster *proc.Cluster
	Proxies []*Proxy
	Drivers []*Driver
}

// player is a client in a row.
type player struct {
	d       *Driver
	values  map[string]any
	pending map[string]*started
	problem string
}

// Play plays a row for all drivers at once, and returns the problem of each. Faults are healed
// at the end of the row.
func (b *Bench) Play(ctx context.Context, row Row) (map[string]string, error) {
	players := make([]*player, len(b.Drivers))
	for i, d := range b.Drivers {
		players[i] = &player{
			d: d, pending: map[string]*started{},
			values: map[string]any{"entity": "conformance/" + slug(d.Name) + "/" + slug(row.Name)},
		}
	}
	for i, s := range row.Steps {
		if s.Fault != "" {
			if err := b.fault(ctx, s.Fault, s.Process); err != nil {
				return nil, fmt.Errorf("row %q, step %d: %w", row.Name, i+1, err)
			}
			continue
		}
		var all sync.WaitGroup
		for _, p := range players {
			if p.problem != "" {
				continue
			}
			all.Go(func() {
				if problem := p.step(ctx, s); problem != "" {
					p.problem = fmt.Sprintf("step %d (%s): %s", i+1, s.call()+s.End+s.Cancel, problem)
				}
			})
		}
		all.Wait()
	}
	problems := map[string]string{}
	for _, p := range players {
		problems[p.d.Name] = p.problem
	}
	return problems, b.heal(ctx)
}

// slug makes a part of the name of an entity of a name.
func slug(name string) string {
	out := []byte(strings.ToLower(name))
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			out[i] = '-'
		}
	}
	return string(out)
}

// step makes a step of a single client, and returns its problem.
func (p *player) step(ctx context.Context, s Step) string {
	switch {
	case s.Pass != 0:
		sleep(ctx, time.Duration(s.Pass)*time.Millisecond)
		return ""
	case s.Cancel != "":
		_, err := p.d.Do("cancel", map[string]any{"of": p.pending[s.Cancel].id}, patience)
		return text(err)
	case s.End != "":
		c := p.pending[s.End]
		delete(p.pending, s.End)
		out, err := c.end(patience)
		if err != nil {
			return err.Error()
		}
		p.values[s.End] = out
		return p.matches(out, s.Want)
	}
	with, err := fill(any(s.With), p.values)
	if err != nil {
		return err.Error()
	}
	args, _ := with.(map[string]any)
	if s.Begin != "" {
		c, err := p.d.start(s.Begin, args)
		p.pending[s.As] = c
		return text(err)
	}
	for deadline := time.Now().Add(patience); ; sleep(ctx, every) {
		out, err := p.d.Do(s.call(), args, patience)
		if err != nil {
			return err.Error()
		}
		problem := p.matches(out, s.Want)
		if s.As != "" {
			p.values[s.As] = out
		}
		if problem == "" || s.Until == "" || ctx.Err() != nil || time.Now().After(deadline) {
			return problem
		}
	}
}

func (p *player) matches(out Outcome, want map[string]any) string {
	filled, err := fill(any(want), p.values)
	if err != nil {
		return err.Error()
	}
	wanted, _ := filled.(map[string]any)
	return Matches(out, wanted)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// fault does a fault to a process, or to the proxies.
func (b *Bench) fault(ctx context.Context, fault, process string) error {
	switch fault {
	case "mute", "heal":
		for _, p := range b.Proxies {
			p.Mute(fault == "mute")
		}
		return nil
	}
	for _, p := range b.processes() {
		if p.Name != process {
			continue
		}
		switch fault {
		case "kill":
			return p.Kill()
		case "stop":
			return p.Signal(syscall.SIGSTOP)
		case "go":
			return p.Signal(syscall.SIGCONT)
		}
		return b.restart(ctx, p)
	}
	return fmt.Errorf("%s: there is no process %q", fault, process)
}

func (b *Bench) processes() []*proc.Process {
	return append(b.Cluster.Sites(), b.Cluster.AppManagers()...)
}

// restart starts a process that has ended, and waits until it is ready.
func (b *Bench) restart(ctx context.Context, p *proc.Process) error {
	if err := p.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.WaitReady(ctx)
}

// heal undoes all faults.
func (b *Bench) heal(ctx context.Context) error {
	for _, p := range b.Proxies {
		p.Mute(false)
	}
	for _, p := range b.processes() {
		if p.PID() == 0 {
			if err := b.restart(ctx, p); err != nil {
				return err
			}
			continue
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	return nil
}
