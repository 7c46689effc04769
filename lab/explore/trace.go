package explore

import (
	"fmt"
	"slices"
	"strings"
)

// trace returns the schedule by which the search reached the violation, step by step: the
// act or message, its site, the messages sent, and the site's new state.
func (s *search) trace() []string {
	if s.violations == nil {
		return nil
	}
	path := []uint32{s.at}
	for path[0] != 0 {
		path = slices.Insert(path, 0, s.seen.parent[path[0]])
	}
	t := &teller{search: s}
	var start global
	for i := range start.site {
		start.site[i] = s.store.full(full{core: s.store.core(i, s.variant.New(i))})
	}
	for i := range start.site {
		t.line("start", i, start.site[i])
	}
	g := t.whole(start)
	for _, i := range path[1:] {
		t.tell(g, func(to global, site int, _ uint32) bool {
			return s.store.after(to, site, g.site[site]) == s.seen.states[i]
		})
		g = s.seen.states[i]
	}
	if s.step != 0 {
		t.tell(g, func(_ global, _ int, broken uint32) bool { return broken == s.step })
	}
	return t.lines
}

type teller struct {
	*search
	lines []string
}

func (t *teller) printf(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func (t *teller) line(what string, site int, id uint32) {
	t.printf("%-4s %s: %v", t.variant.Sites()[site], what, t.store.cores[t.store.fulls[id].core].node)
}

// tell finds the step that leads on, and prints it and the answers that follow at once.
func (t *teller) tell(g global, leadsOn func(to global, site int, broken uint32) bool) {
	for site := range g.site {
		id := g.site[site]
		f := t.store.fulls[id]
		for _, input := range t.inputs(g, site) {
			key := uint64(f.core+1)<<32 | uint64(input)
			i, ok := t.store.steps.get(key)
			if !ok || t.store.results[i].beyond {
				continue
			}
			r := &t.store.results[i]
			to := g
			if input&actInput != 0 {
				to.used += t.store.cores[f.core].acts[input&^actInput].Cost.unit()
			}
			to.site[site] = t.store.full(t.store.with(f, r))
			var broken uint32
			if len(r.broken) > 0 {
				broken = i
			}
			if (broken != 0 || to.site[site] != id) && leadsOn(to, site, broken) {
				t.step(site, f.core, input, r)
				t.whole(to)
				return
			}
		}
	}
	t.printf("(no step found that leads on)")
}

// inputs are the acts of a site and the messages on their way to it.
func (t *teller) inputs(g global, site int) (list []uint32) {
	for i := range t.store.cores[t.store.fulls[g.site[site]].core].acts {
		list = append(list, uint32(i)|actInput)
	}
	for from := range g.site {
		if from != site {
			list = append(list, t.store.boxes[t.store.fulls[g.site[from]].out[site]]...)
		}
	}
	return list
}

func (t *teller) step(site int, core, input uint32, r *result) {
	var what string
	if input&actInput != 0 {
		what = t.store.cores[core].acts[input&^actInput].Name
	} else {
		p := t.store.packets[input]
		what = fmt.Sprintf("receives from %s %s", t.variant.Sites()[p.From], p.Text)
	}
	t.printf("%-4s %s", t.variant.Sites()[site], what)
	t.sends(r)
	t.printf("       now %v", t.store.cores[r.core].node)
	for _, v := range r.broken {
		t.printf("       BREAKS %s: %s", v.Invariant, v.Detail)
	}
}

func (t *teller) sends(r *result) {
	var texts []string
	for _, p := range r.send {
		p := t.store.packets[p]
		texts = append(texts, fmt.Sprintf("to %s %s", t.variant.Sites()[p.To], p.Text))
	}
	if len(texts) > 0 {
		t.printf("       sends %s", strings.Join(texts, "; "))
	}
}

// whole prints urgent deliveries and the answers of sites that do not change by them.
func (t *teller) whole(g global) global {
	for again := true; again; {
		again = false
		for site := range g.site {
			for _, input := range t.inputs(g, site) {
				f := t.store.fulls[g.site[site]]
				act := input&actInput != 0
				if act && t.store.cores[f.core].acts[input&^actInput].Cost != Free {
					continue
				}
				r := t.store.step(f.core, input)
				urgent := !act && !r.beyond && t.store.urgent(f.core, input, r)
				if !urgent && !r.pure(f.core) {
					continue
				}
				if to := t.store.full(t.store.with(f, r)); to != g.site[site] {
					if act {
						t.printf("%-4s %s", t.variant.Sites()[site], t.store.cores[f.core].acts[input&^actInput].Name)
					} else {
						p := t.store.packets[input]
						t.printf("%-4s answers %s's %s", t.variant.Sites()[site], t.variant.Sites()[p.From], p.Text)
					}
					t.sends(r)
					g.site[site], again = to, true
				}
			}
		}
	}
	return g
}
