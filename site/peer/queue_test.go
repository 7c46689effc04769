package peer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
)

// ofSize is a message of exactly size bytes, 1,000 at least. Messages share their
// contents.
func ofSize(t *testing.T, carried []byte, size int) *peerv1.ProtocolMessage {
	t.Helper()
	m := &peerv1.ProtocolMessage{}
	for n := size - 64; n <= size; n++ {
		if m.Snapshot = carried[:n]; proto.Size(m) == size {
			return m
		}
	}
	t.Fatalf("no message has %d bytes", size)
	return nil
}

// TestDefaultsOfAQueue: the bounds of a queue and of a batch without settings.
func TestDefaultsOfAQueue(t *testing.T) {
	const mib = 1 << 20
	carried := make([]byte, mib)
	for name, tc := range map[string]struct {
		size, pushed, kept, batch int
	}{
		"small messages":           {1000, 16_385, 16_384, 1024},
		"messages of 64 KiB":       {64 << 10, 1025, 1024, 128},
		"messages of 1 MiB":        {mib, 65, 64, 8},
		"messages of 1 MiB less 1": {mib - 1, 65, 64, 8},
	} {
		t.Run(name, func(t *testing.T) {
			_, k := inside(nil)
			m := ofSize(t, carried, tc.size)
			for range tc.pushed {
				k.push(m)
			}
			if len(k.queue) != tc.kept || k.bytes != tc.kept*tc.size {
				t.Errorf("%d messages of %d bytes are kept, want %d", len(k.queue), k.bytes, tc.kept)
			}
			if n := len(k.take()); n != tc.batch {
				t.Errorf("a batch of %d messages, want %d", n, tc.batch)
			}
		})
	}
}

// TestRoomInAQueueComesBack: a message that has left the queue takes no room, and no
// memory.
func TestRoomInAQueueComesBack(t *testing.T) {
	const size = 1000
	_, k := inside(func(c *Config) { c.MaxQueuedBytes, c.MaxBatch = 10*size, 4 })
	m := ofSize(t, make([]byte, size), size)
	for round := range 3 {
		for range 15 {
			k.push(m)
		}
		if len(k.queue) != 10 {
			t.Fatalf("round %d: %d messages are kept, want 10", round, len(k.queue))
		}
		all := k.queue
		for i, want := range []int{4, 4, 2, 0} {
			if n := len(k.take()); n != want {
				t.Fatalf("round %d: batch %d is of %d messages, want %d", round, i, n, want)
			}
		}
		if slices.ContainsFunc(all, func(q queued) bool { return q.message != nil }) || k.queue != nil || k.bytes != 0 {
			t.Errorf("round %d: the queue is empty, and keeps %d messages of %d bytes", round, len(all), k.bytes)
		}
	}
}

// TestMessageBeyondALink: a message too large for any link is dropped; the largest
// message of a link fits the bound of the receiver.
func TestMessageBeyondALink(t *testing.T) {
	// Nobody writes to these bytes, so the system gives no memory for them.
	carried := make([]byte, maxWhole)
	_, k := inside(nil)
	k.push(ofSize(t, carried, maxWhole-batchHead+1))
	if len(k.queue) != 0 {
		t.Fatalf("%d bytes are kept", k.bytes)
	}
	k.push(ofSize(t, carried, maxWhole-batchHead))
	messages := k.take()
	if len(messages) != 1 {
		t.Fatalf("%d messages are kept", len(messages))
	}
	if n := proto.Size(&peerv1.Batch{Messages: messages}); n > maxWhole {
		t.Errorf("a batch of %d bytes, at most %d", n, maxWhole)
	}
}

// TestHowStaleAMessageMayBe: a link that comes up drops waiting messages older than 5 s.
func TestHowStaleAMessageMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := inside(nil)
		for i := range uint64(4) {
			k.push(numbered(i))
			pass(t, time.Second)
		}
		pass(t, time.Second)
		// The first is 5 s old now.
		if n := k.dropStale(); n != 0 {
			t.Errorf("%d messages are dropped after 5 s", n)
		}
		pass(t, 1500*ms)
		if n := k.dropStale(); n != 2 {
			t.Errorf("%d messages are dropped, want 2", n)
		}
		if got := instances(k.take()); !slices.Equal(got, []uint64{2, 3}) || k.bytes != 0 {
			t.Errorf("messages %v are sent, and %d bytes kept", got, k.bytes)
		}
	})
}

// TestPartsAreBounded: the memory for parts of a batch is bounded, and holds no byte
// less than the bound.
func TestPartsAreBounded(t *testing.T) {
	// Nobody writes to these bytes but to the last, so the system gives no memory for them.
	before := make([]byte, maxWhole-1, maxWhole+1)
	parts, batch, err := join(before, &peerv1.Part{Data: make([]byte, 1)})
	if len(parts) != maxWhole || batch != nil || err != nil {
		t.Errorf("%d bytes are kept, %v", len(parts), err)
	}
	if parts, _, err := join(before, &peerv1.Part{Data: make([]byte, 2)}); parts != nil || err == nil {
		t.Errorf("%d bytes are kept, %v", len(parts), err)
	}
}
