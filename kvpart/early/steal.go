package early

import "slices"

// pick is the thread looked at after tried others. Conservative and moderate thieves
// look at the others in their order, the rest from the thief on round the ring.
func (w *worker) pick() int {
	switch {
	case w.mode >= Aggressive:
		return (w.id + 1 + w.tried) % len(w.workers)
	case w.tried < w.id:
		return w.tried
	}
	return w.tried + 1
}

// seek looks at the next victim, and ends the hunt after the last.
func (w *worker) seek() outcome {
	if w.tried == len(w.workers)-1 {
		w.at = w.back
		if w.back == drain {
			return idle
		}
		return waiting
	}
	w.victim = w.pick()
	v := w.workers[w.victim]
	if w.mode >= Optimistic && (v.guarded.Load() || v.waits.Load() == 0) {
		w.tried++
		return moved
	}
	w.at = rob
	return moved
}

// rob takes a victim's whole queue if it has concurrent requests alone, and the victim
// runs no batch with a sequential request. Each request that conflicts with a stolen one
// then has either ended, or waits for the victim, and so for the thief. Under Prefix the
// queue may go on with a sequential request, and what follows stays: the victim comes to
// that request only after the thief has ended.
func (w *worker) rob() {
	v := w.workers[w.victim]
	w.tried++
	w.at = seek
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.ready)
	if w.mode == Prefix && v.sequential > 0 {
		n = slices.IndexFunc(v.ready, func(t task) bool { return w.classes[t.class].Sequential })
	} else if v.sequential > 0 {
		return
	}
	if n == 0 || v.guarded.Load() {
		return
	}
	if n < len(v.ready) {
		w.loot = append(w.loot[:0], v.ready[:n]...)
		v.ready = slices.Delete(v.ready, 0, n)
	} else {
		w.loot, v.ready = v.ready, w.loot[:0]
	}
	w.taken = 0
	v.waits.Store(int32(len(v.ready)))
	v.robbed[w.id].Store(1)
	v.room.Broadcast()
	w.steals.Add(1)
	w.stolen.Add(int64(n))
	w.at = plunder
}

// plunder goes on to the next stolen request. The request that the thief waits at stays
// at hand.
func (w *worker) plunder() {
	if w.taken < len(w.loot) {
		w.taken++
		w.robbing, w.at = true, start
		return
	}
	clear(w.loot)
	w.loot, w.robbing = w.loot[:0], false
	w.at = restore
}
