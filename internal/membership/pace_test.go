package membership

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/samya-db/samya/internal/preset"
)

// call is an attempt to reach another node.
type call struct {
	addr string
	at   time.Time
}

// deaf is a transport that reaches nobody: a call takes a while, and is then told.
type deaf struct {
	*memberlist.MockTransport
	takes time.Duration
	calls chan call
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (d *deaf) DialAddressTimeout(a memberlist.Address, _ time.Duration) (net.Conn, error) {
	<-time.After(d.takes)
	d.calls <- call{a.Addr, time.Now()}
	return nil, io.ErrClosedPipe
}

// calling is a node in a bubble that calls a seed, which does not answer.
func calling(t *testing.T, takes time.Duration) (m *Membership, calls <-chan call) {
	t.Helper()
	d := &deaf{(&memberlist.MockNetwork{}).NewTransport("us"), takes, make(chan call, 1000)}
	conf := memberlist.DefaultLocalConfig()
	conf.Name, conf.Transport, conf.Logger = "site/us", d, log.New(io.Discard, "", 0)
	list, err := memberlist.Create(conf)
	if err != nil {
		t.Fatal(err)
	}
	m = &Membership{
		list: list, table: newTable(site("us")), log: slog.New(slog.DiscardHandler),
		addr: "127.0.0.1:1", seeds: []string{"10.0.0.9:7946", "127.0.0.1:1"},
		pace: preset.Seeds{First: time.Second, Most: 6 * time.Second, Steady: time.Minute},
		stop: func() bool { return true },
	}
	m.table.NotifyJoin(told(site("us"), 1))
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	m.loop.Go(func() { m.keepJoined(ctx) })
	return m, d.calls
}

// TestPaceOfTheCalls: a node alone calls its seeds after a pause that doubles up to a
// bound, and a node with others calls steadily. A node that is alone again begins anew,
// and calls lost nodes as well. Each pause is drawn from 0.5 to 1.5 of its length.
func TestPaceOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last, exact := time.Now(), 0
		m, calls := calling(t, 0)
		after := func(want time.Duration, addrs ...string) {
			t.Helper()
			// All are called at the same time, in any order.
			for i := range addrs {
				c := <-calls
				took := c.at.Sub(last)
				if i > 0 {
					want = 0
				}
				at := slices.Index(addrs, c.addr)
				if at < 0 || took < want/2 || took > want*3/2 {
					t.Errorf("%s is called after %v, want one of %v after some %v", c.addr, took, addrs, want)
				} else {
					addrs[at] = "" // called
				}
				if took == want && want > 0 {
					exact++
				}
				last = c.at
			}
			// The node looks whether it is alone after its calls: a change of the table waits.
			synctest.Wait()
		}
		const seed, lost = "10.0.0.9:7946", "10.0.0.2:7946"
		after(0, seed)
		for _, want := range []int{1, 2, 4, 6, 6, 6, 6, 6} {
			after(time.Duration(want)*time.Second, seed)
		}
		if exact > 0 {
			t.Errorf("%d pauses are of their very length: nodes that began together call together", exact)
		}
		m.table.NotifyJoin(told(site("eu"), 2))
		after(6*time.Second, seed)
		after(time.Minute, seed)
		after(time.Minute, seed)
		m.table.NotifyLeave(told(site("eu"), 2))
		after(time.Minute, seed, lost)
		for _, want := range []int{1, 2, 4, 6, 6} {
			after(time.Duration(want)*time.Second, seed, lost)
		}
		before := time.Now()
		if err := m.Close(); err != nil || !time.Now().Equal(before) {
			t.Errorf("closed after %v: %v", time.Since(before), err)
		}
	})
}

// TestSilentSeedHoldsUpNobody: all targets are called at once, though calls take long.
func TestSilentSeedHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, calls := calling(t, 10*time.Second)
		synctest.Wait() // It calls the seed alone.
		m.table.NotifyJoin(told(site("eu"), 2))
		m.table.NotifyLeave(told(site("eu"), 2))
		<-calls
		if one, other := <-calls, <-calls; one.addr == other.addr || !one.at.Equal(other.at) {
			t.Errorf("%s is called at %v, %s at %v", one.addr, one.at, other.addr, other.at)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		<-time.After(time.Minute)
	})
}

// TestCloseWaitsForACall: once Close has returned, nothing of the node runs.
func TestCloseWaitsForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, calls := calling(t, time.Second)
		synctest.Wait()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if len(calls) != 1 {
			t.Errorf("%d calls have ended", len(calls))
		}
		<-time.After(time.Minute) // A call that Close has left ends here.
	})
}

// TestKeysAreFollowed: every ten seconds a changed file of keys is taken up. A faulty
// file is told once, and again after a good file.
func TestKeysAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, after = "0123456789abcdef", "fedcba9876543210"
		path := keyFile(t, before)
		ring, err := memberlist.NewKeyring(nil, []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		lines := make(chan string, 100)
		m := &Membership{log: logTo(lines), keyFile: path, keyring: ring}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.followKeys(ctx)
		}()
		check := func(when string, problems int, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, k := range ring.GetKeys() {
				got = append(got, string(k))
			}
			if !slices.Equal(got, want) || len(lines) != problems {
				t.Errorf("%s the keys are %q, want %q; %d problems are told, want %d", when, got, want, len(lines), problems)
			}
		}
		<-time.After(time.Second)
		writeKeys(t, path, after, before)
		<-time.After(9*time.Second - time.Millisecond)
		check("after 9.999 s", 0, before)
		<-time.After(time.Second)
		check("after 10 s", 0, after, before)
		writeKeys(t, path, "short")
		<-time.After(30 * time.Second)
		check("with a bad file", 1, after, before)
		writeKeys(t, path, before)
		<-time.After(10 * time.Second)
		check("with a good file", 1, before)
		writeKeys(t, path, "short")
		<-time.After(30 * time.Second)
		check("with a bad file again", 2, before)
		end := time.Now()
		cancel()
		<-done
		if took := time.Since(end); took != 0 {
			t.Errorf("the end takes %v", took)
		}
	})
}
