package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/samya-db/samya/devcluster/proc"
)

// rounds is a run under way.
type rounds struct {
	options *Options
	dir     string
	report  *Report
	draws   map[Workload][]uint32
	begun   int // number of measurements
	all     int
}

// wanted returns the wanted cells of a way.
func (o *Options) wanted(about *About, w Way) []Cell {
	var cells []Cell
	for _, load := range workloads {
		c := Cell{System: about.Name, Way: w.Name, Workload: load}
		if load != Hot && (w.HotOnly || w.Offered > 0 || about.Kind == Control) || load == Even && !w.Even {
			continue
		}
		if o.Wanted == nil || o.Wanted(c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// system starts a system, measures its cells and stops it.
func (m *rounds) system(ctx context.Context, s System, round int) (err error) {
	about := s.About()
	cells := 0
	for _, w := range about.Ways {
		cells += len(m.options.wanted(&about, w))
	}
	if cells == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(m.dir, "data-*")
	if err != nil {
		return fmt.Errorf("make a directory for the data: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	env := &Env{Dir: dir, Programs: proc.NewPrograms()}
	defer func() {
		// An error of a dead system says little; its log says more.
		for _, p := range env.Programs.Processes() {
			if death := p.Death(); err != nil && death != nil && death.Err != nil {
				err = errors.Join(err, death)
			}
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		err = cmp.Or(err, env.Programs.Stop(end, grace))
		for _, d := range append(env.elsewhere, dir) {
			if gone := os.RemoveAll(d); gone != nil {
				err = errors.Join(err, fmt.Errorf("remove the data: %w", gone))
			}
		}
	}()
	m.tell("round %d of %d: start %s", round+1, m.options.Rounds, about.Name)
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	running, err := s.Start(starting, env)
	if running != nil {
		defer func() { err = cmp.Or(err, running.Close()) }()
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	made := make(map[Workload]bool)
	for _, w := range about.Ways {
		for _, c := range m.options.wanted(&about, w) {
			if books, ok := running.(Books); ok && !made[c.Workload] {
				if err := books.Create(ctx, c.Workload.entities(), tokens); err != nil {
					return fmt.Errorf("create the entities of %s: %w", c.Workload, err)
				}
				made[c.Workload] = true
			}
			sample, err := m.cell(ctx, running, &about, w, c, round)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", w.Name, c.Workload, err)
			}
			m.report.add(c, sample)
			m.begun++
			m.tell("%d of %d: %s: %.0f/s, p99 %.2f ms", m.begun, m.all, c, sample.Rate, sample.P99/1000)
		}
	}
	return nil
}

// cell measures a cell once, and checks that the system did its job. It begins with a
// disk that has nothing left to write for others.
func (m *rounds) cell(ctx context.Context, running Running, about *About, w Way, c Cell, round int) (s *Sample, err error) {
	flush()
	d, err := running.Open(ctx, w.Name)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = cmp.Or(err, d.Close()) }()
	books, counts := running.(Books)
	pids := running.Processes()
	l := &Load{
		Callers: w.Callers, Batch: w.Batch, Offered: w.Offered,
		Entities: c.Workload.entities(), Draws: m.draw(c.Workload),
		Prefix: fmt.Sprintf("%s-%d", c.Workload, m.begun),
		Warmup: m.options.Warmup, Time: m.options.Time,
		Usage: func() (Usage, error) { return usage(pids) },
	}
	if w.Sessions {
		l.Prefix = ""
	}
	if own, ok := d.(Selfmade); ok {
		return own.Measure(ctx, l)
	}
	if !counts {
		return drive(ctx, d, l)
	}
	if round == 0 {
		if err := check(ctx, books, d, about, w, fmt.Sprintf("acme/scarce/%d", m.begun)); err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
	}
	before, err := books.Left(ctx, l.Entities)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	if s, err = m.drive(ctx, d, l, pids); err != nil {
		return nil, err
	}
	after, err := books.Left(ctx, l.Entities)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	return s, balance(l.Entities, before, after, s.granted)
}

// drive makes load, with the observer running beside.
func (m *rounds) drive(ctx context.Context, d Driver, l *Load, pids []int) (*Sample, error) {
	observing, stop := context.WithCancel(ctx)
	var observer sync.WaitGroup
	if m.options.observe != nil {
		observer.Go(func() { m.options.observe(observing, pids) })
	}
	s, err := drive(ctx, d, l)
	stop()
	observer.Wait()
	return s, err
}

// draw returns the draws of a workload; it makes them once.
func (m *rounds) draw(w Workload) []uint32 {
	if m.draws[w] == nil {
		m.draws[w] = w.draws(seed)
	}
	return m.draws[w]
}

func (m *rounds) tell(format string, args ...any) {
	if m.options.Progress != nil {
		m.options.Progress(fmt.Sprintf(format, args...))
	}
}
