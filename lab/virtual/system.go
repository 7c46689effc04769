package virtual

import (
	"time"

	"github.com/samya-db/samya/predict"
)

// Kind says what a request asks for.
type Kind uint8

const (
	// Acquire asks for one token.
	Acquire Kind = iota + 1
	// Release gives one back that was granted.
	Release
	// ReadStale asks how many tokens are free, as its server knows without asking
	// anybody.
	ReadStale
	// ReadExact asks how many are free at one instant.
	ReadExact
)

// Lead is how long a system has to come up before the first request is made.
const Lead = 10 * time.Second

// Request is what a client asks. It belongs to who drives the load; systems pass
// it on as it is, and do not look at it any more once they have answered it.
type Request struct {
	Kind Kind
	// Of numbers the lease that is acquired or released, or the read, from 0.
	Of int32
	// Place is whose server is asked.
	Place Place
	// Due is when the client wanted it, on the world's clock. Latency counts from
	// then. An acquire or a read that has no answer by Deadline is given up; a
	// release is never.
	Due, Deadline time.Duration
}

// Outcome is what a request came to.
type Outcome uint8

const (
	// Granted: it is done: the token is acquired, released, or the number read.
	Granted Outcome = iota + 1
	// Refused: there was no token for it.
	Refused
	// TimedOut: it was given up; nothing was acquired.
	TimedOut
)

// System is what counts the tokens in a run: samya's sites or a rival's servers.
// It is driven by one goroutine, and takes all its time, delays and crashes from
// its world.
type System interface {
	// Start brings it up, with limit tokens free. Requests come Lead later at the
	// earliest.
	Start(w *World, limit int, answer func(*Request, Outcome)) error
	// Handle takes a request as it reaches the server of its place, which is up. The
	// system calls answer, once, when the answer leaves that server: for acquires
	// and reads by the Deadline, or as soon after as the answer is durable. It does
	// not if the place crashes before.
	Handle(*Request)
	// Crashed and Restarted are told after the world has done so to a place.
	Crashed(Place)
	Restarted(Place)
	// Out is how many tokens are granted and not released, by what is durable. Check
	// says what is wrong with the books once all has come to rest, which it looks at
	// all of.
	Out() int
	Check() error
	// Counters tell what it did, by name: messages, redistributions and the like.
	// Names below mean the same of all systems.
	Counters() map[string]float64
}

// Names of counters that Results show in fields of their own.
const (
	// Waited counts the acquires that were not answered by what their server held
	// as they came.
	Waited = "waited"
	// Begun, with a blank and a reason behind it, counts the redistributions begun.
	Begun = "begun"
	// Applied counts each of them once a server that applied it.
	Applied = "applied"
	// Failed counts those that failed.
	Failed = "failed"
	// GaveUp counts how often a server believed that there are no tokens left.
	GaveUp = "gave up"
	// Messages are those sent for redistributions.
	Messages = "messages"
	// MessageBytes is what they take on the wire.
	MessageBytes = "message bytes"
	// Gossip are the messages that only tell what servers have.
	Gossip = "gossip"
	// GossipBytes is what they take on the wire.
	GossipBytes = "gossip bytes"
	// Moved are the tokens that servers got by redistributions beyond what they gave.
	Moved = "moved"
)

// Learner is a System that forecasts.
type Learner interface {
	// Learn is called before Start with what each place would have seen before the
	// run had all been granted, in bins of such a length, of which day make a season
	// of a day; nil for places without.
	Learn(history [][]predict.Bin, bin time.Duration, day int)
}

// Elsewhere is a System that has servers beyond those of the places that are
// asked.
type Elsewhere interface {
	// Servers are the regions of its further places, which are numbered behind all
	// that are asked.
	Servers() []string
}

// Knower is a System that knows what is free for the clients of a place: what its
// server and those that it reaches have not granted, under way between them
// included. Of others that is the limit less Out.
type Knower interface{ Free(Place) int }
