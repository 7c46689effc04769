package kvoracle

import (
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// registerUse is a request's use of a register: it writes or sees an id.
type registerUse struct {
	writes bool
	id     uint64
}

// registerOf is the model of a key that all clients write, with its initial value.
func registerOf(initial uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial },
		Step: func(state, in, _ any) (bool, any) {
			use := in.(registerUse)
			if use.writes {
				return true, use.id
			}
			return state == use.id, state
		},
	}
}

// decide bounds the judgement of a key.
const decide = 10 * time.Second

// registers judges the keys that all clients write, key by key.
func (h *history) registers() *Violation {
	uses := make(map[int][]porcupine.Operation)
	told := make(map[int][]*op)
	// A write of unknown outcome took effect before a read first saw it.
	first := make(map[uint64]int64)
	for _, o := range h.ops {
		for _, r := range o.reads {
			if at, ok := first[r.id]; !ok || o.ret < at {
				first[r.id] = o.ret
			}
		}
	}
	for _, o := range h.ops {
		add := func(a access, writes bool) {
			if h.l.keys[a.key].class != shared {
				return
			}
			ret := o.ret
			if ret == never {
				if at, ok := first[a.id]; ok {
					ret = at
				} else {
					return
				}
			}
			uses[a.key] = append(uses[a.key], porcupine.Operation{ClientId: o.client, Input: registerUse{writes: writes, id: a.id}, Call: o.call, Return: ret})
			told[a.key] = append(told[a.key], o)
		}
		for _, r := range o.reads {
			add(r, false)
		}
		for _, w := range o.writes {
			add(w, true)
		}
	}
	for _, k := range h.l.classes[shared] {
		switch porcupine.CheckOperationsTimeout(registerOf(h.l.state[k].id), uses[k], decide) {
		case porcupine.Ok:
		case porcupine.Unknown:
			h.l.Undecided++
		default:
			var b strings.Builder
			const most = 40
			for i, o := range told[k] {
				if i == most {
					b.WriteString("\n  …")
					break
				}
				b.WriteString("\n  " + h.l.text(o))
			}
			return violated(Register, "%s: no order explains what was seen of it:%s", h.l.keys[k].name, b.String())
		}
	}
	return nil
}
