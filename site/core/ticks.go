package core

// members is a set of members by their position in Config.Members.
type members uint64

func (m members) has(i int) bool { return m&(1<<i) != 0 }

func (m *members) remove(i int) { *m &^= 1 << i }

// acksWake is the time to look at a wait of the entity again; 0 for never.
func (e *entity) acksWake() Tick {
	a := e.acks()
	if a == nil || len(a.waits) == 0 {
		return 0
	}
	t := max(1, a.askAt)
	for i := range a.waits {
		t = earlier(t, max(1, a.waits[i].until))
	}
	return t
}

// auditWake is the time at which a watch, or the state of an audit, is to be forgotten.
func (e *entity) auditWake() Tick {
	if e.audit == nil {
		return 0
	}
	at := max(e.audit.begun, e.audit.suspected) + watchFor
	for i := range e.audit.watches {
		at = max(at, e.audit.watches[i].until)
	}
	return at
}

// before implements dated.
func (e *entity) before(o *entity) bool { return e.wake < o.wake }

// index implements dated.
func (e *entity) index() *int32 { return &e.heapAt }

// earlier returns the earlier of two times, 0 being never.
func earlier(a, b Tick) Tick {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func firstUntil(pending []*pendingChange) Tick {
	var t Tick
	for _, p := range pending {
		t = earlier(t, max(1, p.until))
	}
	return t
}

// sequence is a part in a sequence of instances, with its next time to act.
type sequence interface{ WakeAt() (Tick, bool) }

func wakeOf(s sequence) Tick {
	if at, ok := s.WakeAt(); ok {
		return max(1, at)
	}
	return 0
}
