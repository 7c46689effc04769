package kvoracle

import (
	"cmp"
	"maps"
	"slices"
)

// history is a finished round.
type history struct {
	l *Load
	// ops are the requests that took effect or may have.
	ops []*op
	// writers are the writers of values, by the value's id.
	writers map[uint64]*op
	// forbidden are the ids of values that no client may see, with the reason.
	forbidden map[uint64]string
	// versions are the values of the keys with a known order, in order; the first is
	// the value at the start of the round.
	versions [][]version
}

// version is a value of a key.
type version struct {
	id uint64
	by *op // nil for the initial value
}

// judge judges the requests since the last call. Without a last scan of everything,
// the state afterwards is unknown.
func (l *Load) judge(last *op) {
	h := l.collect()
	if v := h.judge(); v != nil {
		l.violate(v)
		return
	}
	if last == nil || len(last.reads) != len(l.keys) {
		return
	}
	copy(l.state, last.reads)
	for _, c := range append(slices.Clone(l.clients), l.auditor) {
		c.ops = nil
		clear(c.retired)
	}
}

// collect gathers the history from the clients.
func (l *Load) collect() *history {
	h := &history{l: l, writers: make(map[uint64]*op), forbidden: make(map[uint64]string)}
	var doubtful []*op
	for _, c := range append(slices.Clone(l.clients), l.auditor) {
		maps.Copy(h.forbidden, c.forbidden)
		for _, o := range c.ops {
			l.count(o)
			if o.late != nil {
				if r := o.late.Load(); r != nil && r.err == nil {
					o.reads, o.writes = r.reads, r.writes
					doubtful = append(doubtful, o)
				}
				continue
			}
			switch {
			case o.outcome == refused:
				for _, w := range o.writes {
					if w.id != absent {
						h.forbidden[w.id] = "its writer was told that it was not done"
					}
				}
			case o.outcome == done || len(o.writes) > 0:
				h.ops = append(h.ops, o)
			}
		}
	}
	h.believe(doubtful)
	slices.SortFunc(h.ops, func(a, b *op) int { return cmp.Compare(a.call, b.call) })
	for _, o := range h.ops {
		for _, w := range o.writes {
			if w.id != absent {
				h.writers[w.id] = o
			}
		}
	}
	return h
}

func (l *Load) count(o *op) {
	l.Requests++
	switch o.outcome {
	case refused:
		l.Refused++
	case unknown:
		l.Unknown++
	}
	switch o.kind {
	case scan:
		l.Scans++
	case execute:
		l.Executes++
	}
}

// believe adds the doubtful Executes with an effect that a request saw.
func (h *history) believe(doubtful []*op) {
	seen := make(map[uint64]bool)
	see := func(o *op) {
		for _, r := range o.reads {
			seen[r.id] = true
		}
	}
	for _, o := range h.ops {
		see(o)
	}
	for again := true; again; {
		again = false
		doubtful = slices.DeleteFunc(doubtful, func(o *op) bool {
			if !slices.ContainsFunc(o.writes, func(w access) bool { return w.id != absent && seen[w.id] }) {
				return false
			}
			again = true
			h.ops = append(h.ops, o)
			see(o)
			return true
		})
	}
}

func (h *history) judge() *Violation {
	if v := h.known(); v != nil {
		return v
	}
	if v := h.order(); v != nil {
		return v
	}
	if v := h.acyclic(); v != nil {
		return v
	}
	return h.registers()
}

// known fails if a request saw a value never written, or a forbidden value.
func (h *history) known() *Violation {
	for _, o := range h.ops {
		for _, r := range o.reads {
			if r.id == absent || r.id == h.l.state[r.key].id || h.writers[r.id] != nil {
				continue
			}
			if why, ok := h.forbidden[r.id]; ok {
				return violated(Refused, "%s: nobody may see %s: %s", h.l.text(o), idText(r.id), why)
			}
			return violated(Order, "%s: %s was overwritten long before, or was never written", h.l.text(o), idText(r.id))
		}
	}
	return nil
}

// order finds the order of versions of all keys but the shared keys.
func (h *history) order() *Violation {
	h.versions = make([][]version, len(h.l.keys))
	for k := range h.versions {
		h.versions[k] = []version{{id: h.l.state[k].id}}
	}
	for _, o := range h.ops { // by call: own keys are then in order
		for _, w := range o.writes {
			if h.l.keys[w.key].class != shared {
				h.versions[w.key] = append(h.versions[w.key], version{id: w.id, by: o})
			}
		}
	}
	for _, class := range []class{account, counter} {
		for _, k := range h.l.classes[class] {
			if v := h.chain(k); v != nil {
				return v
			}
		}
	}
	return nil
}

// chain orders the versions of a key changed by Execute alone: each version has the
// number after the version that its writer saw.
func (h *history) chain(k int) *Violation {
	number := func(v version) uint64 {
		for _, w := range v.by.writes {
			if w.key == k {
				return w.version
			}
		}
		return 0
	}
	all := h.versions[k][1:]
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(number(a), number(b)) })
	want := h.l.state[k].version
	for i, v := range all {
		want++
		switch n := number(v); {
		case n < want && i > 0:
			return violated(Once, "%s: an effect is lost, two wrote number %d: %s; and %s", h.l.keys[k].name, n, h.l.text(all[i-1].by), h.l.text(v.by))
		case n != want:
			return violated(Once, "%s: number %d follows %d: %s", h.l.keys[k].name, n, want-1, h.l.text(v.by))
		}
	}
	return nil
}
