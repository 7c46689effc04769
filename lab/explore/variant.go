package explore

// Sites is the number of sites that are searched.
const Sites = 3

// Variant is a protocol to search. A single goroutine uses it.
type Variant interface {
	// Name is the name that people call the variant by.
	Name() string
	// Sites are the sites' names, in order.
	Sites() [Sites]string
	// New returns a site as it is at the start.
	New(site int) Node
	// RequestsLast says that no step depends on clients' requests that came before,
	// so that they need be searched after all other steps only.
	RequestsLast() bool
	// Check returns the invariants across sites that do not hold, or nil. It
	// leaves the nodes alone.
	Check(nodes [Sites]Node) []Violation
	// Heal lets copies of the nodes run on: no crash any more, every message arrives,
	// every time-out fires in its time. It returns the violations, such as a stuck site.
	Heal(nodes [Sites]Node) []Violation
}

// Node is a site: the real state machine, its durable state, the books it moves tokens
// in, and the past that the invariants need. The search calls Do and Deliver on a copy,
// once.
type Node interface {
	// Clone returns an independent copy.
	Clone() Node
	// Key appends an encoding of the whole node to dst. Nodes of a site with the same key
	// behave alike and are equal to Variant.Check.
	Key(dst []byte) []byte
	// Acts are the things that can happen here without a message, always in the
	// same order.
	Acts() []Act
	// Do lets act i happen.
	Do(i int) Step
	// Deliver hands the site a message.
	Deliver(p *Packet) Step
	// Urgent reports whether a message that leads to another node is delivered here as
	// soon as it is sent. The variant says why no violation is missed by that.
	Urgent(p *Packet, to Node) bool
	// Past returns the instances with a past that the node knows.
	Past() Past
	// Stale reports whether a message of an instance that goes on nowhere makes no
	// difference here, ever again. Dead reports whether the delivery of such a message,
	// which leads to another node, can as well come at once.
	Stale(p *Packet) bool
	Dead(p *Packet) bool
	// Forget returns a copy without the record of some instances that go on nowhere any
	// more. The variant says why no violation is missed by that.
	Forget(instances uint64) Node
	// Rank returns a number that seldom falls between steps. States are searched in the
	// order of the sum of their ranks; nothing else rests on it.
	Rank() int
	// String describes the node in a line, for a trace.
	String() string
}

// Past are sets of instances, as bits in the variant's own numbering. An instance that is
// ended for a site and open for none goes on nowhere.
type Past struct {
	// Recorded are the instances with records in the node for the invariants alone.
	Recorded uint64
	// Open are the instances that may still go on here.
	Open uint64
	// Ended are the instances that this site alone can begin, and that it will not begin
	// any more.
	Ended uint64
}

// Cost is the budget, shared by all sites, that an act draws from.
type Cost uint8

const (
	// Free acts are bounded by the site itself.
	Free Cost = iota
	// Crash loses all that is not durable; the site starts again.
	Crash
	// Acquire is a client's acquire of a token.
	Acquire
	// Release is a client's release of a token acquired before, here or
	// elsewhere.
	Release
	// Loss writes a site off, for good.
	Loss

	costs
)

// used are the budgets that have been used up, eight bits each.
type used uint32

// unit is one more of a cost.
func (c Cost) unit() used {
	if c == Free {
		return 0
	}
	return 1 << (8 * (uint32(c) - 1))
}

// all are the bits of a cost.
func (c Cost) all() used { return 0xff * c.unit() }

// of returns how often a cost was paid.
func (u used) of(c Cost) int { return int(u & c.all() / max(1, c.unit())) }

// Act is an event at a site without a message.
type Act struct {
	Name string
	Cost Cost
}

// Step is the result of an act or of a message.
type Step struct {
	// Send are the messages that leave, all that they rest on being durable.
	Send []Packet
	// Beyond says that the step leads out of the bounds: it is not taken.
	Beyond bool
	// Broken are the invariants of this site alone that the step has broken.
	Broken []Violation
}

// Packet is a message between two sites. It does not change.
type Packet struct {
	From, To int
	// Instance is the message's instance, as a bit; 0 if the variant keeps all instances.
	Instance uint64
	// Key is the same for equal messages only.
	Key string
	// Body is the message.
	Body any
	// Text describes it, for a trace.
	Text string
}

// Violation is an invariant that does not hold.
type Violation struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}
