package replica_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

// made is a commit that a node was given to append.
type made struct {
	by  *machine
	ops []journal.Op
}

// model judges the log from outside: by the transactions that the store carried out. It
// shares no code with the log.
type model struct {
	w *world
	// made are all commits by their payload. Each payload is made once.
	made map[string]*made
	// after is the commit before the first of the log. commits are those behind it, states
	// the site's state after each, with states[0] the state at after.
	after   journal.Number
	commits []*made
	states  []*journaltest.Base
	// first is the first commit that is not trimmed.
	first journal.Number
	parts map[string]string
	// term and leader are the leader as the store has it; led is the last commit at the
	// begin of each term, by the owner of each term.
	term int64
	led  map[int64]journal.Number
	by   map[int64]replica.Leader
	// asks are the questions under way who leads.
	asks []*ask
	// told is the standing of each node as the store has it.
	told map[string]replica.Standing
	err  error
}

// ask is a question whether a node leads. It may be answered yes if the node has led at
// any moment since.
type ask struct {
	term int64
	led  bool
}

func newModel(w *world) *model {
	return &model{
		w: w, made: make(map[string]*made), states: []*journaltest.Base{journaltest.NewBase()}, first: 1,
		parts: make(map[string]string), led: make(map[int64]journal.Number), by: make(map[int64]replica.Leader),
		told: make(map[string]replica.Standing),
	}
}

// fail notes the first violation.
func (m *model) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
		m.w.note("VIOLATION: %v", m.err)
	}
}

func (m *model) last() journal.Number { return m.after + journal.Number(len(m.commits)) }

// commit returns a commit by its number; nil if there is none.
func (m *model) commit(n journal.Number) *made {
	if n <= m.after || n > m.last() {
		return nil
	}
	return m.commits[n-m.after-1]
}

// state is the site's state after a commit.
func (m *model) state(n journal.Number) *journaltest.Base { return m.states[n-m.after] }

// began begins the log behind a commit.
func (m *model) began(after journal.Number, state *journaltest.Base) {
	m.after, m.first, m.states = after, after+1, []*journaltest.Base{state}
}

// restored takes that the store was put back to a copy, whose log has the given first and
// last commits.
func (m *model) restored(c replicatest.Copy, first, last journal.Number) {
	m.commits, m.states, m.first = m.commits[:last-m.after], m.states[:last-m.after+1], first
	clear(m.told)
	clear(m.parts)
	m.term = 0
	for key, e := range c {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(key, keys.Prefix()), "/")
		switch kind {
		case "leader":
			m.term = e.Rev
		case "part":
			m.parts[rest] = string(e.Value)
		case "nodes":
			var s replica.Standing
			if err := json.Unmarshal(e.Value, &s); err != nil {
				panic(err)
			}
			m.told[rest] = s
		}
	}
}

// asked begins a question whether a term is the leader's.
func (m *model) asked(term int64) *ask {
	a := &ask{term: term, led: term == m.term}
	m.asks = append(m.asks, a)
	return a
}

// took takes a transaction that the store has carried out.
func (m *model) took(t *replica.Txn, rev int64) {
	for _, c := range t.Then {
		name := strings.TrimPrefix(c.Key, keys.Prefix())
		kind, rest, _ := strings.Cut(name, "/")
		switch {
		case c.To != "":
			m.deleted(kind, rest, strings.TrimPrefix(c.To, keys.Prefix()))
		case kind == "leader":
			m.leads(c.Value, rev)
		case kind == "log":
			m.put(rest, c.Value)
		case kind == "part":
			m.piece(rest, c.Value)
		case kind == "nodes":
			var s replica.Standing
			if err := json.Unmarshal(c.Value, &s); err != nil {
				m.fail("node %s tells %q: %v", rest, c.Value, err)
			}
			m.told[rest] = s
		}
	}
}

func (m *model) leads(value []byte, rev int64) {
	var l replica.Leader
	if err := json.Unmarshal(value, &l); err != nil {
		m.fail("leader %q: %v", value, err)
	}
	m.term, m.led[rev], m.by[rev] = rev, m.last(), l
	for _, a := range m.asks {
		a.led = a.led || a.term == rev
	}
	m.w.note("        term %d is that of %s, run %d, after commit %d", rev, l.Node, l.Run, m.last())
}

func number(hex string) journal.Number {
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		panic(err)
	}
	return journal.Number(n)
}

// put takes a commit.
func (m *model) put(rest string, value []byte) {
	n := number(rest)
	if n == m.after && len(m.commits) == 0 && m.term == 0 {
		return // the begin of the log
	}
	parts, term := int(binary.LittleEndian.Uint16(value[2:])), int64(binary.LittleEndian.Uint64(value[4:]))
	if term != m.term {
		m.fail("commit %d of term %d is put in term %d", n, term, m.term)
	}
	if n != m.last()+1 {
		m.fail("commit %d is put behind commit %d", n, m.last())
		return
	}
	payload := string(value[36:])
	for i := range parts {
		payload += m.parts[fmt.Sprintf("%016x/%016x/%04x", n, term, i)]
	}
	c := m.made[payload]
	switch {
	case c == nil:
		m.fail("commit %d was never made", n)
		return
	case slices.Contains(m.commits, c):
		m.fail("commit %d is there twice", n)
	case c.by.name != m.by[term].Node:
		m.fail("commit %d of %s is put in the term of %s", n, c.by.name, m.by[term].Node)
	}
	state := m.states[len(m.states)-1].Clone()
	if err := state.Apply(c.ops, nil); err != nil {
		panic(err)
	}
	m.commits, m.states = append(m.commits, c), append(m.states, state)
	if parts > 0 {
		m.w.hit("parted")
	}
	m.w.note("        commit %d of term %d, %d parts", n, term, parts)
}

// piece takes a part of a commit.
func (m *model) piece(rest string, value []byte) {
	if term := int64(number(strings.Split(rest, "/")[1])); term != m.term {
		m.fail("a part of term %d is put in term %d", term, m.term)
	}
	m.parts[rest] = string(value)
}

// deleted judges a deletion: each commit deleted is on two disks, or on those of all
// nodes that there are. The last commit stays.
func (m *model) deleted(kind, from, to string) {
	if kind == "part" {
		// The parts of a commit are of no use without it. Checked by those who read.
		for key := range m.parts {
			if key >= from && "part/"+key < to {
				delete(m.parts, key)
			}
		}
		return
	}
	if kind != "log" {
		m.fail("%s/%s to %s is deleted", kind, from, to)
		return
	}
	end := number(strings.TrimPrefix(to, "log/"))
	if end > m.last() {
		m.fail("the log is trimmed through commit %d, the last is %d", end-1, m.last())
	}
	if end <= m.first {
		return
	}
	have, need := 0, 0
	for _, n := range m.w.machines {
		if n.through() >= end-1 {
			have++
		}
		if s, ok := m.told[n.name]; ok && !s.Copies {
			need++
		}
	}
	if have < min(2, need) {
		m.fail("the log is trimmed through commit %d, which is on %d disks; nodes: %v", end-1, have, m.told)
	}
	m.w.hit("trims")
	m.first = end
	m.w.note("        trimmed through commit %d", end-1)
}

// same compares the state of a node that has all commits through n.
func (m *model) same(who *machine, n journal.Number) {
	switch {
	case n > m.last():
		m.fail("%s has commit %d, the store has %d", who.name, n, m.last())
	case n >= who.exact && n >= m.after && !who.base.Equal(m.state(n)):
		m.fail("the base of %s differs at commit %d", who.name, n)
	}
}
