package virtual

import (
	"time"

	"github.com/samya-db/samya/predict"
)

// Kind is the kind of a request.
type Kind uint8

const (
	// Acquire asks for a token.
	Acquire Kind = iota + 1
	// Release gives a granted token back.
	Release
	// ReadStale asks for the number of free tokens by the server's own knowledge.
	ReadStale
	// ReadExact asks for the number of free tokens at a single instant.
	ReadExact
)

// Lead is the time for a system to come up before the first request.
const Lead = 10 * time.Second

// Request is a request of a client. It belongs to the driver of the load. Systems
// pass it on unchanged, and do not use it after their answer.
type Request struct {
	Kind Kind
	// Of is the number of the lease to acquire or release, or of the read, from 0.
	Of int32
	// Place is the place of the asked server.
	Place Place
	// Due is the time at which the client wanted the answer, on the world's clock.
	// Latency counts from then. An acquire or a read without an answer by Deadline
	// is given up; a release never is.
	Due, Deadline time.Duration
}

// Outcome is the outcome of a request.
type Outcome uint8

const (
	// Granted: the token is acquired or released, or the number read.
	Granted Outcome = iota + 1
	// Refused: there was no free token.
	Refused
	// TimedOut: the request was given up; nothing was acquired.
	TimedOut
)

// System counts the tokens in a run: samya's sites or a rival's servers. A single
// goroutine drives it. It takes all time, delays and crashes from its world.
type System interface {
	// Start brings the system up, with limit tokens free. The first request comes
	// Lead later or after.
	Start(w *World, limit int, answer func(*Request, Outcome)) error
	// Handle takes a request as it reaches the server of its place, which is up. The
	// system calls answer once, when the answer leaves the server: for acquires and
	// reads by the Deadline, or as soon after as the answer is durable. There is no
	// answer if the place crashes before.
	Handle(*Request)
	// Crashed and Restarted are called after the world has crashed or restarted a
	// place.
	Crashed(Place)
	Restarted(Place)
	// Out returns the tokens granted and not released, by the durable books. Check
	// returns an error in the books once all has come to rest.
	Out() int
	Check() error
	// Counters returns counters by name: messages, redistributions and the like. The
	// names below mean the same for all systems.
	Counters() map[string]float64
}

// The counters with their own fields in results.
const (
	// Waited counts the acquires that their server could not answer from its own
	// tokens on arrival.
	Waited = "waited"
	// Begun, with a blank and a reason behind, counts the redistributions begun.
	Begun = "begun"
	// Applied counts applied redistributions, once for each server that applied it.
	Applied = "applied"
	// Failed counts failed redistributions.
	Failed = "failed"
	// GaveUp counts the times that a server found that no tokens were left.
	GaveUp = "gave up"
	// Messages counts the messages of redistributions.
	Messages = "messages"
	// MessageBytes is the size of Messages on the wire, in bytes.
	MessageBytes = "message bytes"
	// Gossip counts the messages that only tell the state of servers.
	Gossip = "gossip"
	// GossipBytes is the size of Gossip on the wire, in bytes.
	GossipBytes = "gossip bytes"
	// Moved is the tokens that servers received by redistributions minus the tokens
	// that they gave.
	Moved = "moved"
)

// Learner is a System that forecasts.
type Learner interface {
	// Learn is called before Start with each place's demand before the run, as if
	// all had been granted. The history has bins of length bin, with day bins in a
	// season of a day; it is nil for places without.
	Learn(history [][]predict.Bin, bin time.Duration, day int)
}

// Elsewhere is a System with servers beyond the asked places.
type Elsewhere interface {
	// Servers returns the regions of its further places, numbered after all asked
	// places.
	Servers() []string
}

// Knower is a System that knows the tokens free for the clients of a place: the
// tokens not granted by its server and the servers that it reaches, tokens on their
// way between them included. For other systems the number is the limit less Out.
type Knower interface{ Free(Place) int }
