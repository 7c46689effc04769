package explore

import (
	"encoding/binary"
	"slices"
)

// store interns everything that states are made of, and remembers every step
// of a site: each pair of a site's state and an input is run once only, however
// many states of the whole system it occurs in.
type store struct {
	variant Variant

	packets   []*Packet
	packetIDs map[string]uint32

	// A core is a site without its sent messages.
	cores   []core
	coreIDs map[string]uint32
	// steps maps core and input to an index of results.
	steps   table
	results []result
	// forgot maps a core and a set of instances to the core without their past. cleared
	// maps a box, a core and a set of instances to the box without stale messages. about
	// are the instances of each box.
	forgot  map[past]uint32
	cleared map[clearing]uint32
	about   []uint64

	// A box is the set of messages that a site has sent to another: packet numbers,
	// increasing. Box 0 is empty.
	boxes  [][]uint32
	boxIDs map[string]uint32
	grown  table // box and packet to box
	// grownFrom is, for each box, a box that lacks a single packet of it, and the packet.
	grownFrom []growth
	// supersets maps two boxes to 1 if the first holds all of the second, else 0.
	supersets table

	// A full site is a core with its sent messages.
	fulls   []full
	fullIDs map[full]uint32
	acts    []span   // for each full site; edges to full sites
	said    []uint32 // for each full site; see alone; plus 1
	pairs   table    // full site and incoming box to an index of answers
	answers []reply  // see pair
	edges   []edge

	// watch, if set, is called with each state before its past is dropped.
	watch func(global)

	key []byte
}

type core struct {
	node Node
	site int
	rank int
	acts []Act
	past Past
}

type full struct {
	core uint32
	out  [Sites]uint32
}

// result is the outcome of a step.
type result struct {
	core   uint32
	send   []uint32
	beyond bool
	broken []Violation
}

// pure reports whether a step leaves a core as it is: at most, something is said.
func (r *result) pure(core uint32) bool {
	return !r.beyond && r.core == core && len(r.broken) == 0
}

// growth is a box and a packet that it does not hold, if known.
type growth struct {
	box, packet uint32
	known       bool
}

// edge is a step that leads to another full site.
type edge struct {
	to     uint32
	input  uint32
	cost   Cost
	broken uint32 // index of a result that has broken invariants; 0 for none
}

type span struct{ from, to uint32 }

// reply is the result of letting a full site hear all of a box. whole is the site once it
// has heard urgent messages and said all that it says without changing. next are the
// steps in which it changes.
type reply struct {
	whole uint32
	next  span
}

// actInput marks an input that is an act.
const actInput = 1 << 31

func newStore(v Variant) *store {
	return &store{
		variant:   v,
		packetIDs: make(map[string]uint32),
		coreIDs:   make(map[string]uint32),
		boxes:     [][]uint32{nil},
		boxIDs:    map[string]uint32{"": 0},
		grownFrom: make([]growth, 1),
		fullIDs:   make(map[full]uint32),
		forgot:    make(map[past]uint32),
		cleared:   make(map[clearing]uint32),
		about:     make([]uint64, 1),
		results:   make([]result, 1),
	}
}

func (s *store) packet(p Packet) uint32 {
	if id, ok := s.packetIDs[p.Key]; ok {
		return id
	}
	id := uint32(len(s.packets))
	s.packets = append(s.packets, &p)
	s.packetIDs[p.Key] = id
	return id
}

func (s *store) core(site int, n Node) uint32 {
	s.key = n.Key(append(s.key[:0], byte(site)))
	if id, ok := s.coreIDs[string(s.key)]; ok {
		return id
	}
	id := uint32(len(s.cores))
	s.cores = append(s.cores, core{node: n, site: site, rank: n.Rank(), acts: n.Acts(), past: n.Past()})
	s.coreIDs[string(s.key)] = id
	return id
}

func (s *store) full(f full) uint32 {
	if id, ok := s.fullIDs[f]; ok {
		return id
	}
	id := uint32(len(s.fulls))
	s.fulls = append(s.fulls, f)
	s.fullIDs[f] = id
	s.acts = append(s.acts, span{})
	s.said = append(s.said, 0)
	return id
}

// step runs an input at a core, once.
func (s *store) step(c, input uint32) *result {
	key := uint64(c+1)<<32 | uint64(input)
	if i, ok := s.steps.get(key); ok {
		return &s.results[i]
	}
	node := s.cores[c].node.Clone()
	var out Step
	if input&actInput != 0 {
		out = node.Do(int(input &^ actInput))
	} else {
		out = node.Deliver(s.packets[input])
	}
	r := result{core: c, beyond: out.Beyond}
	if !out.Beyond {
		r.core = s.core(s.cores[c].site, node)
		r.broken = out.Broken
		for i := range out.Send {
			r.send = append(r.send, s.packet(out.Send[i]))
		}
	}
	s.steps.put(key, uint32(len(s.results)))
	s.results = append(s.results, r)
	return &s.results[len(s.results)-1]
}

// with returns the full site that has taken a step.
func (s *store) with(f full, r *result) full {
	f.core = r.core
	for _, p := range r.send {
		to := s.packets[p].To
		f.out[to] = s.grow(f.out[to], p)
	}
	return f
}

// grow adds a packet to a box.
func (s *store) grow(box, p uint32) uint32 {
	i, found := slices.BinarySearch(s.boxes[box], p)
	if found {
		return box
	}
	key := uint64(box+1)<<32 | uint64(p)
	if b, ok := s.grown.get(key); ok {
		return b
	}
	b := s.box(slices.Insert(slices.Clone(s.boxes[box]), i, p))
	if !s.grownFrom[b].known {
		s.grownFrom[b] = growth{box, p, true}
	}
	s.grown.put(key, b)
	return b
}

func (s *store) box(list []uint32) uint32 {
	s.key = s.key[:0]
	for _, p := range list {
		s.key = binary.LittleEndian.AppendUint32(s.key, p)
	}
	if id, ok := s.boxIDs[string(s.key)]; ok {
		return id
	}
	id := uint32(len(s.boxes))
	s.boxes = append(s.boxes, list)
	var about uint64
	for _, p := range list {
		about |= s.packets[p].Instance
	}
	s.about = append(s.about, about)
	s.grownFrom = append(s.grownFrom, growth{})
	s.boxIDs[string(s.key)] = id
	return id
}

// actsOf returns the acts of a full site that change something.
func (s *store) actsOf(id uint32) span {
	if sp := s.acts[id]; sp.to != 0 {
		return sp
	}
	f := s.fulls[id]
	from := uint32(len(s.edges))
	for i, act := range s.cores[f.core].acts {
		s.connect(id, f, uint32(i)|actInput, act.Cost)
	}
	// An edge that leads nowhere keeps a span from being empty.
	s.edges = append(s.edges, edge{to: id})
	s.acts[id] = span{from, uint32(len(s.edges))}
	return s.acts[id]
}

// connect adds the edge of an input, unless the input changes nothing or leads out of the
// bounds.
func (s *store) connect(id uint32, f full, input uint32, cost Cost) {
	r := s.step(f.core, input)
	if r.beyond {
		return
	}
	e := edge{to: s.full(s.with(f, r)), input: input, cost: cost}
	if len(r.broken) > 0 {
		key := uint64(f.core+1)<<32 | uint64(input)
		i, _ := s.steps.get(key)
		e.broken = i
	} else if e.to == id {
		return
	}
	s.edges = append(s.edges, e)
}

// holds reports whether box a holds all that box b does.
func (s *store) holds(a, b uint32) bool {
	if a == b || b == 0 {
		return true
	}
	if a == 0 || len(s.boxes[a]) <= len(s.boxes[b]) {
		return false
	}
	key := uint64(a)<<32 | uint64(b)
	if yes, ok := s.supersets.get(key); ok {
		return yes == 1
	}
	var yes uint32 = 1
	big := s.boxes[a]
	for _, p := range s.boxes[b] {
		i, found := slices.BinarySearch(big, p)
		if !found {
			yes = 0
			break
		}
		big = big[i+1:]
	}
	s.supersets.put(key, yes)
	return yes == 1
}
