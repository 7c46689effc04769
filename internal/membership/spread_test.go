package membership

import (
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// TestSpread: a dropped update is repeated, before and after an update was adopted.
func TestSpread(t *testing.T) {
	late := errors.New("late")
	cases := map[string]struct {
		timeout time.Duration
		dropped int  // the first calls: memberlist drops the update
		stuck   int  // the first calls: the news does not leave
		calls   int  // expected
		fails   bool // expected
	}{
		"at once":                {timeout: time.Minute, calls: 1},
		"dropped once":           {timeout: time.Minute, dropped: 1, stuck: 1, calls: 2},
		"dropped often":          {timeout: time.Minute, dropped: 9, stuck: 9, calls: 10},
		"slow":                   {timeout: time.Minute, stuck: 1, calls: 2},
		"dropped, then slow":     {timeout: time.Minute, dropped: 1, stuck: 2, calls: 3},
		"slow, and no time":      {stuck: 99, calls: 1, fails: true},
		"dropped, and no time":   {dropped: 1, stuck: 99, calls: 2, fails: true},
		"dropped each time":      {timeout: time.Minute, dropped: 99, stuck: 99, calls: spreadMost, fails: true},
		"slow beyond the time":   {timeout: time.Minute, stuck: 99, calls: 9, fails: true},
		"dropped, slow for ever": {timeout: time.Minute, dropped: 2, stuck: 99, calls: 9, fails: true},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			calls := 0
			err := spread(func(time.Duration) error {
				if calls++; calls <= c.stuck {
					return late
				}
				return nil
			}, func() bool { return calls > c.dropped }, c.timeout)
			if calls != c.calls || (err != nil) != c.fails {
				t.Errorf("%d calls end with %v, not %d", calls, err, c.calls)
			}
		})
	}
}

// TestUpdatesAmongRumours: another node tells again and again that this node is dead. Each
// update is taken all the same, although memberlist refutes the rumours meanwhile.
func TestUpdatesAmongRumours(t *testing.T) {
	us := start(t, Config{Self: site("us")})
	eu := start(t, Config{Self: site("eu"), Join: []string{us.Addr()}})
	sees(t, eu, "site/eu site/us")
	done := make(chan struct{})
	var rumours sync.WaitGroup
	rumours.Go(func() {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "udp", eu.Addr())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		for i := uint32(0); ; i++ {
			select {
			case <-done:
				return
			default:
				_, _ = c.Write(suspicion("samya/test", "site/eu", "site/us", 100*i))
			}
		}
	})
	for i := range 300 {
		n := site("eu")
		n.Load = uint8(i%200) + 1
		_ = eu.UpdateSelf(n, 0) // without a wait for the news to leave
		if m := eu.Sites()[0]; m.Node != n {
			t.Errorf("update %d is lost: %+v", i, m)
			break
		}
	}
	close(done)
	rumours.Wait()
}

// suspicion is memberlist's packet that from suspects node to be dead.
func suspicion(label, node, from string, incarnation uint32) []byte {
	text := func(b []byte, s string) []byte { return append(append(b, 0xa0|byte(len(s))), s...) }
	b := append([]byte{244, byte(len(label))}, label...) // the header that tells the cluster
	b = append(b, 3, 0x83)                               // a suspicion, and a map of three
	b = append(text(b, "Incarnation"), 0xce)
	b = binary.BigEndian.AppendUint32(b, incarnation)
	b = text(text(b, "Node"), node)
	return text(text(b, "From"), from)
}
