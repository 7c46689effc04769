package early

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// mark is a job with a number, for the search.
type mark int

func (mark) Run(int) {}

// model is a machine with the requests still to be appended, and what has happened.
type model struct {
	machine
	conflicts *Classes
	trace     []int
	// given counts the requests handed over; giving is set while some queue lacks the last.
	given  int
	giving bool
	// begun and over are sets of requests; broken is the first broken rule.
	begun, over uint
	broken      error
}

func newModel(mode Mode, classes *Classes, mapping *Mapping, trace []int) *model {
	m := &model{conflicts: classes, trace: trace}
	m.init(mode, mapping, len(trace))
	m.watch()
	return m
}

// watch has the model judge each request.
func (m *model) watch() {
	m.started = func(t task, thread int) {
		id := int(t.job.(mark))
		if m.begun&(1<<id) != 0 {
			m.broken = fmt.Errorf("request %d ran twice", id)
		}
		m.begun |= 1 << id
		for i, class := range m.trace[:id] {
			if m.conflicts.Conflicts(class, t.class) && m.over&(1<<i) == 0 {
				m.broken = fmt.Errorf("request %d began on thread %d before request %d had ended", id, thread, i)
			}
		}
		if m.workers[thread].robbing && m.classes[t.class].Sequential {
			m.broken = fmt.Errorf("request %d of a sequential class was stolen", id)
		}
	}
	m.finished = func(t task, _ int) { m.over |= 1 << int(t.job.(mark)) }
}

// clone copies a model between two steps.
func (m *model) clone() *model {
	o := &model{conflicts: m.conflicts, trace: m.trace, given: m.given, giving: m.giving, begun: m.begun, over: m.over}
	o.mode, o.queue, o.adding, o.next = m.mode, m.queue, m.adding, m.next
	o.closing.Store(m.closing.Load())
	o.classes = make([]class, len(m.classes))
	for i := range m.classes {
		from, to := &m.classes[i], &o.classes[i]
		to.Assignment, to.turn = from.Assignment, from.turn
		to.marks[0].Store(from.marks[0].Load())
		to.marks[1].Store(from.marks[1].Load())
		to.before.count, to.before.generation = from.before.count, from.before.generation
		to.after.count, to.after.generation = from.after.count, from.after.generation
	}
	for _, from := range m.workers {
		to := &worker{
			machine: &o.machine, id: from.id, ready: slices.Clone(from.ready), sequential: from.sequential,
			robbed: make([]cell, len(from.robbed)), at: from.at, batch: slices.Clone(from.batch), done: from.done, ahead: from.ahead,
			cycles: slices.Clone(from.cycles), now: from.now, leads: from.leads, generation: from.generation,
			loot: slices.Clone(from.loot), taken: from.taken, robbing: from.robbing, victim: from.victim, tried: from.tried, back: from.back,
		}
		to.room.L = &to.mu
		to.guarded.Store(from.guarded.Load())
		to.waits.Store(from.waits.Load())
		for i := range from.robbed {
			to.robbed[i].Store(from.robbed[i].Load())
		}
		o.workers = append(o.workers, to)
	}
	o.watch()
	return o
}

// act takes a step of an actor: a thread, or the one that appends.
func (m *model) act(actor int) {
	if actor < len(m.workers) {
		m.workers[actor].step()
		return
	}
	switch {
	case m.giving:
	case m.given == len(m.trace):
		m.closing.Store(true)
		return
	default:
		m.begin(m.trace[m.given], mark(m.given))
		m.given++
	}
	m.giving = m.push(false)
}

func (m *model) done() bool {
	if m.given < len(m.trace) || m.giving || !m.closing.Load() || m.over != 1<<len(m.trace)-1 {
		return false
	}
	for _, w := range m.workers {
		if w.at != drain {
			return false
		}
	}
	return true
}

// key is the state, equal for states that behave alike.
func (m *model) key() string {
	b := make([]byte, 0, 128)
	put := func(values ...int) {
		for _, v := range values {
			b = append(b, byte(v))
		}
	}
	flag := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	tasks := func(ts []task) {
		put(len(ts))
		for _, t := range ts {
			put(int(t.job.(mark)))
		}
	}
	put(m.given, flag(m.giving), m.next, flag(m.closing.Load()), int(m.begun), int(m.over))
	for i := range m.classes {
		c := &m.classes[i]
		put(int(c.marks[0].Load()), int(c.marks[1].Load()), c.before.count, c.after.count, c.turn)
	}
	for _, w := range m.workers {
		put(int(w.at), flag(w.guarded.Load()), w.ahead, flag(w.robbing))
		tasks(w.ready)
		tasks(w.batch[w.done:])
		for i := range w.robbed {
			put(int(w.robbed[i].Load()))
		}
		put(w.cycles...)
		if w.now.job != nil {
			put(int(w.now.job.(mark)), flag(w.leads))
		}
		switch w.at {
		case gather:
			put(flag(m.classes[w.now.class].before.over(w.generation)))
		case part:
			put(flag(m.classes[w.now.class].after.over(w.generation)))
		case seek, rob, plunder, restore, start, finish:
			put(w.tried, w.victim, int(w.back))
			tasks(w.loot[min(w.taken, len(w.loot)):])
			put(w.taken)
		}
	}
	return string(b)
}

// search takes the steps of all actors in all orders, to closure. It fails if an order
// breaks a rule, or if no order leads from a state to the end.
func search(mode Mode, classes *Classes, mapping *Mapping, trace []int) (states int, err error) {
	ids := map[string]int32{}
	var before [][]int32 // the states before each
	var ends []int32
	note := func(m *model, from int32) (int32, bool) {
		key := m.key()
		id, known := ids[key]
		if !known {
			id = int32(len(ids))
			ids[key] = id
			before = append(before, nil)
			if m.done() {
				ends = append(ends, id)
			}
		}
		if from >= 0 && from != id {
			before[id] = append(before[id], from)
		}
		return id, known
	}
	type open struct {
		*model
		id int32
	}
	first := newModel(mode, classes, mapping, trace)
	id, _ := note(first, -1)
	todo := []open{{first, id}}
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for a := range mapping.Threads + 1 {
			m := o.clone()
			if m.act(a); m.broken != nil {
				return len(ids), m.broken
			}
			if id, known := note(m, o.id); !known {
				todo = append(todo, open{m, id})
			}
		}
	}
	ended := make([]bool, len(ids))
	for len(ends) > 0 {
		id := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		if !ended[id] {
			ended[id] = true
			ends = append(ends, before[id]...)
		}
	}
	if stuck := slices.Index(ended, false); stuck >= 0 {
		return len(ids), fmt.Errorf("no order leads from state %d of %d to the end", stuck, len(ids))
	}
	return len(ids), nil
}

// TestEveryOrder searches every order of 3 threads, 2 classes and 3 requests, for some
// traces; the modes that steal on few mappings. With EARLY_SEARCH all traces of 4 requests
// in all modes, on all mappings.
func TestEveryOrder(t *testing.T) {
	race.OneGoroutine(t)
	seq := func(threads ...int) Assignment { return Assignment{Sequential: true, Threads: threads} }
	conc := func(threads ...int) Assignment { return Assignment{Threads: threads} }
	all := os.Getenv("EARLY_SEARCH") != ""
	for _, c := range []struct {
		name      string
		of        []Assignment
		conflicts [][2]int
	}{
		{"reads and global writes", []Assignment{conc(0, 1, 2), seq(0, 1, 2)}, [][2]int{{0, 1}, {1, 1}}},
		{"two sequential classes", []Assignment{seq(0, 1), seq(1, 2)}, [][2]int{{0, 0}, {0, 1}, {1, 1}}},
		{"a sequential class of one thread", []Assignment{conc(0), seq(0)}, [][2]int{{0, 1}, {1, 1}}},
		{"a class that others do not wait for", []Assignment{conc(0, 2), seq(0, 1)}, [][2]int{{1, 1}}},
		{"two threads of three", []Assignment{conc(0, 1), seq(0, 1)}, [][2]int{{0, 1}, {1, 1}}},
	} {
		for _, mode := range Modes() {
			if mode == Late || mode.steals() && !all && (len(c.of[0].Threads) == 3 || c.of[0].Sequential) {
				continue // no such mode, or one with many states
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, mode), func(t *testing.T) {
				classes, err := NewClasses(len(c.of))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range c.conflicts {
					classes.Conflict(p[0], p[1])
				}
				mapping := &Mapping{Threads: 3, Of: c.of}
				if err := classes.Validate(mapping); err != nil {
					t.Fatal(err)
				}
				var traces [][]int
				switch {
				case all:
					for bits := range 1 << 4 {
						traces = append(traces, []int{bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1})
					}
				case !classes.Conflicts(0, 1):
					traces = [][]int{{1, 0, 0}}
				default:
					traces = [][]int{{0, 0, 1}, {0, 1, 0}}
				}
				total := 0
				for _, trace := range traces {
					states, err := search(mode, classes, mapping, trace)
					if err != nil {
						t.Fatalf("trace %v: %v", trace, err)
					}
					total += states
				}
				t.Logf("%d states of %d traces", total, len(traces))
			})
		}
	}
}
