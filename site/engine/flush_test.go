package engine

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// gathering is a Receiver that gathers answers until it is flushed.
type gathering struct {
	gathered, flushed int
	now               []bool
}

// Receive implements Receiver.
func (g *gathering) Receive(*Call, answer.Answer, error) Flusher {
	if g.gathered++; g.gathered > 1 {
		return nil
	}
	return g
}

// Flush implements Flusher.
func (g *gathering) Flush(now bool) {
	g.flushed, g.gathered = g.flushed+g.gathered, 0
	g.now = append(g.now, now)
}

// TestFlush: answers are flushed once for each stream, after all of them were told. The
// finishing goroutine sends the answers of a few streams itself, and those of more streams
// not. Answers of calls that are given up are flushed too.
func TestFlush(t *testing.T) {
	const each = 3 // calls of a stream
	for _, tc := range []struct {
		streams int
		now     bool
		givenUp bool
	}{{1, true, false}, {mostFlushed, true, false}, {mostFlushed + 1, false, false}, {1, true, true}} {
		e, batch := idle(t, 0), new(batch)
		streams := make([]gathering, tc.streams)
		for range each {
			for i := range streams {
				c := &Call{To: &streams[i]}
				e.open.add(c)
				batch.Replies = append(batch.Replies, core.Reply{Call: c})
			}
		}
		if tc.givenUp {
			e.GiveUp()
		} else {
			<-e.spare
			e.finish(batch)
		}
		for i := range streams {
			if g := &streams[i]; g.flushed != each || len(g.now) != 1 || g.now[0] != tc.now {
				t.Errorf("%+v: stream %d: %d answers in flushes %v", tc, i, g.flushed, g.now)
			}
		}
	}
}
