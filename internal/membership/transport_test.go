package membership

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// dialing is a transport and the address of a listener that answers nothing.
func dialing(t *testing.T) (tr *transport, addr string, end context.CancelFunc) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	conf := memberlist.DefaultLocalConfig()
	conf.BindAddr, conf.BindPort, conf.Logger = "127.0.0.1", 0, log.New(io.Discard, "", 0)
	tr, err = newTransport(ctx, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Shutdown() })
	return tr, lis.Addr().String(), cancel
}

// TestEndClosesWhatWasDialled: the end of a node ends every wait for a silent node, and
// the node dials nobody from then on.
func TestEndClosesWhatWasDialled(t *testing.T) {
	tr, addr, end := dialing(t)
	c, err := tr.DialAddressTimeout(memberlist.Address{Addr: addr}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	end()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading ends with %v", err)
	}
	_ = c.Close()
	if c, err := tr.DialTimeout(addr, 10*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("dialling after the end: %v", err)
		if err == nil {
			_ = c.Close()
		}
	}
}

// TestClosedConnectionIsForgotten: a connection that is closed is not kept until the end
// of the node.
func TestClosedConnectionIsForgotten(t *testing.T) {
	tr, addr, _ := dialing(t)
	c, err := tr.DialTimeout(addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if c.(*conn).release() {
		t.Error("the end of the node still closes it")
	}
}

// TestDialIsBoundedInTime: a node that cannot be reached holds nobody up for longer than
// memberlist says.
func TestDialIsBoundedInTime(t *testing.T) {
	tr, addr, _ := dialing(t)
	c, err := tr.DialTimeout(addr, time.Nanosecond)
	if err == nil {
		_ = c.Close()
	}
	if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("dialling for a nanosecond: %v", err)
	}
}

// TestPortsThatAreTaken: a node looks for any port a few times, as a port free for TCP
// may be taken for UDP. It tries a given port once.
func TestPortsThatAreTaken(t *testing.T) {
	for _, tc := range []struct{ port, taken, tries int }{
		{0, 0, 1}, {0, 1, 2}, {0, portTries - 1, portTries}, {0, portTries, portTries}, {7000, 0, 1}, {7000, 1, 1},
	} {
		tries := 0
		port, err := onPort(tc.port, func() (int, error) {
			if tries++; tries <= tc.taken {
				return 0, io.ErrClosedPipe
			}
			return tries, nil
		})
		if tries != tc.tries || (err == nil) != (tc.taken < tc.tries) || err == nil && port != tries {
			t.Errorf("%+v: %d tries, %d, %v", tc, tries, port, err)
		}
	}
}
