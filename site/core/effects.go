package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// Reply answers a call.
type Reply struct {
	Call   input.Call
	Answer answer.Answer
}

// Effects is a batch of effects, to be carried out as the package comment says.
type Effects struct {
	Records  stored.Records
	Messages []message.Envelope
	Replies  []Reply
	// Events are for the metrics; they bind nobody.
	Events []event.Event
}

// Empty reports whether there is nothing to carry out.
func (e *Effects) Empty() bool {
	return e.Records.Empty() && len(e.Messages) == 0 && len(e.Replies) == 0 && len(e.Events) == 0
}

// Reset empties the batch for another use, keeping its memory.
func (e *Effects) Reset() {
	clear(e.Messages)
	clear(e.Replies)
	e.Messages, e.Replies, e.Events = e.Messages[:0], e.Replies[:0], e.Events[:0]
	e.Records.Reset()
}
