package peer_test

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/peer"
)

// sized is a message of about size bytes.
func sized(from, to core.SiteID, n, size int) message.Envelope {
	m := numbered(from, to, n)
	m.Message.Kind, m.Message.Snapshot = avantan.CatchUp, bytes.Repeat([]byte("x"), size)
	return m
}

// TestBatchesAreBoundedByBytes: queued messages go in batches of few bytes, also a
// message larger than a batch. No number of messages breaks the link.
func TestBatchesAreBoundedByBytes(t *testing.T) {
	b := newBook()
	var most atomic.Int64
	us := start(t, b, "us", func(c *peer.Config) { c.MaxBatchBytes = 10_000 })
	const n = 100
	for i := range n {
		us.links.Send([]message.Envelope{sized("us", "eu", i, 1000+i/50*20_000)})
	}
	eu := start(t, b, "eu", func(c *peer.Config) {
		receive := c.Receive
		c.Receive = func(from core.SiteID, messages []message.Envelope) {
			size := int64(0)
			for i := range messages {
				size += int64(len(messages[i].Message.Snapshot))
			}
			if len(messages) > 1 {
				most.Store(max(most.Load(), size))
			}
			receive(from, messages)
		}
	})
	for i := range n {
		if m := eu.next(); m.Message.Instance != avantan.Instance(i) {
			t.Fatalf("message %d: %d", i, m.Message.Instance)
		}
	}
	if got := most.Load(); got == 0 || got > 10_000 {
		t.Errorf("a batch of several messages has %d bytes", got)
	}
}

// TestQueueIsBoundedByBytes: messages that wait for a link take no more memory than the
// bound, and a single larger message goes all the same.
func TestQueueIsBoundedByBytes(t *testing.T) {
	b := newBook()
	us := start(t, b, "us", func(c *peer.Config) { c.MaxQueuedBytes = 10_500 })
	for i := range 100 {
		us.links.Send([]message.Envelope{sized("us", "eu", i, 1000)})
	}
	us.links.Send([]message.Envelope{sized("us", "as", 7, 50_000)})
	eu, as := start(t, b, "eu", nil), start(t, b, "as", nil)
	if m := as.next(); m.Message.Instance != 7 {
		t.Errorf("message %d", m.Message.Instance)
	}
	us.awaitLinked("as", "eu")
	for i := range 10 {
		if m := eu.next(); m.Message.Instance != avantan.Instance(i) {
			t.Fatalf("message %d: %d", i, m.Message.Instance)
		}
	}
	us.links.Send([]message.Envelope{numbered("us", "eu", 1000)})
	if m := eu.next(); m.Message.Instance != 1000 {
		t.Errorf("message %d of 100 small ones was kept", m.Message.Instance)
	}
}

// TestStaleMessagesAreDropped: messages that have waited long for a link to come up are
// not sent.
func TestStaleMessagesAreDropped(t *testing.T) {
	b := newBook()
	us := start(t, b, "us", func(c *peer.Config) { c.Stale = time.Nanosecond })
	us.links.Send([]message.Envelope{numbered("us", "eu", 1), numbered("us", "eu", 2)})
	eu := start(t, b, "eu", nil)
	us.awaitLinked("eu")
	us.links.Send([]message.Envelope{numbered("us", "eu", 3)})
	if m := eu.next(); m.Message.Instance != 3 {
		t.Errorf("message %d is sent although it is stale", m.Message.Instance)
	}
}
