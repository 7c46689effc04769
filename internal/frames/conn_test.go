package frames

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/testfuzz"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSilence: a side that hears nothing asks, and closes a connection that stays silent.
// An answer to the ping keeps the connection.
func TestSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		answers bool
		closed  bool
	}{"silent": {false, true}, "answers pings": {true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				c := newConn(near, most)
				defer c.watch()()
				ended := make(chan error, 1)
				go func() {
					_, _, err := c.next()
					ended <- err
				}()
				pings := 0
				go func() {
					other := newConn(far, most)
					for {
						k, _, err := other.read()
						if err != nil {
							return
						}
						if k == ping {
							pings++
						}
						if tc.answers {
							_ = other.send(pong, nil)
						}
					}
				}()
				time.Sleep(quietTime + patience + time.Second) //nolint:forbidigo // simulated time
				synctest.Wait()
				select {
				case err := <-ended:
					if !tc.closed {
						t.Errorf("ended: %v", err)
					}
				default:
					if tc.closed {
						t.Error("the connection stays")
					}
				}
				if pings != 1 {
					t.Errorf("%d pings", pings)
				}
				near.Close()
			})
		})
	}
}

// TestBusyIsNotAsked: a side that hears something asks nothing.
func TestBusyIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c, other := newConn(near, most), newConn(far, most)
		defer c.watch()()
		got := make(chan kind, 100)
		go func() {
			for {
				k, _, err := other.read()
				if err != nil {
					return
				}
				got <- k
			}
		}()
		go func() {
			for {
				if _, _, err := c.next(); err != nil {
					return
				}
			}
		}()
		for range 10 {
			time.Sleep(quietTime / 2) //nolint:forbidigo // simulated time
			if err := other.sendMessage(&samyav1.StreamResponse{Window: 1}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("it sent %d frames, the first of kind %d", len(got), <-got)
		}
		near.Close()
		far.Close()
	})
}

// TestNoHello: a client that does not greet is cut off in time.
func TestNoHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		s := &Server{Service: newService(), MaxMessage: most}
		if !s.take(newConn(near, most), credentials.TLSInfo{}) {
			t.Fatal("not taken")
		}
		time.Sleep(helloTime + time.Millisecond) //nolint:forbidigo // simulated time
		synctest.Wait()
		if s.Open() != 0 {
			t.Error("the connection stays")
		}
	})
}

// TestUntaken: a side that takes nothing does not hold up the other for ever.
func TestUntaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := newConn(near, most)
		sent := make(chan error, 1)
		go func() { sent <- c.sendMessage(&samyav1.StreamResponse{Window: 1}) }()
		time.Sleep(writeTime + time.Millisecond) //nolint:forbidigo // simulated time
		synctest.Wait()
		select {
		case err := <-sent:
			if err == nil {
				t.Error("nobody has taken it, and there is no error")
			}
		default:
			t.Error("the message waits on")
		}
		near.Close()
	})
}

// TestRoom: the memory of a connection shrinks after a large frame.
func TestRoom(t *testing.T) {
	near, far := net.Pipe()
	c, other := newConn(near, most), newConn(far, most)
	go func() {
		for _, size := range []int{1, most / 2, 1, 1} {
			_ = other.sendMessage(&samyav1.StreamRequest{Calls: []*samyav1.Call{{Operation: &samyav1.Operation{
				Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: strings.Repeat("e", size)}},
			}}}})
		}
		other.Close()
	}()
	for {
		var m samyav1.StreamRequest
		if err := c.receiveMessage(&m, nil); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
	}
	if len(c.in) != roomBytes || cap(other.out) > roomBytes {
		t.Errorf("%d bytes kept for what comes in, %d for what goes out", len(c.in), cap(other.out))
	}
}

// TestBounds: a frame beyond its bound is refused by its head alone, and takes no memory.
func TestBounds(t *testing.T) {
	for name, sends := range map[string]string{"a message": "\x02\xff\xff\xff", "a status": "\x03\x00\x40\x01"} {
		c := newConn(buffered{Reader: strings.NewReader(sends)}, most)
		if _, _, err := c.next(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.in) != roomBytes {
			t.Errorf("%s: %d bytes are kept for it", name, len(c.in))
		}
	}
}

// buffered is a connection that has certain bytes to read.
type buffered struct {
	net.Conn
	io.Reader
}

func (b buffered) Read(p []byte) (int, error)       { return b.Reader.Read(p) }
func (b buffered) Write(p []byte) (int, error)      { return len(p), nil }
func (b buffered) Close() error                     { return nil }
func (b buffered) SetWriteDeadline(time.Time) error { return nil }

// FuzzFrames: whatever comes in, reading ends, with frames within their bounds.
func FuzzFrames(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte("\x02\x00\x00\x01x\x04\x00\x00\x00\x05\x00\x00\x00\x03\x00\x00\x02ab"), 3)
	f.Add([]byte("\x02\xff\xff\xff"), 1)
	f.Add([]byte("\x01\x00\x40\x01"), 100)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		const bound = 1000
		c := newConn(buffered{Reader: &steps{bytes.NewReader(data), max(1, step%50)}}, bound)
		total := 0
		for {
			k, content, err := c.next()
			if err != nil {
				break
			}
			if k == message && len(content) > bound || len(content) > maxHello {
				t.Fatalf("a frame of kind %d with %d bytes", k, len(content))
			}
			if total += headerBytes + len(content); total > len(data) {
				t.Fatal("more was read than there is")
			}
		}
		if len(c.in) > roomBytes+headerBytes+maxHello {
			t.Errorf("%d bytes are kept", len(c.in))
		}
	})
}

// steps is a reader of a few bytes at once.
type steps struct {
	io.Reader
	most int
}

func (s *steps) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), s.most)]) }

// FuzzGreeting: a greeting that is read is written the same.
func FuzzGreeting(tf *testing.F) {
	f := testfuzz.On(tf)
	g := greeting{most: 5, name: "site/us", authorization: "Bearer x"}
	f.Add(g.appendTo(nil))
	f.Add([]byte("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := readGreeting(data)
		if err != nil {
			return
		}
		again, err := readGreeting(g.appendTo(nil))
		if err != nil || again != g {
			t.Errorf("%+v, %+v, %v", g, again, err)
		}
		if g.most < 0 || g.most > mostContent {
			t.Errorf("%d", g.most)
		}
	})
}

// TestUnknownMessage: a message without generated code is an error, not a crash.
func TestUnknownMessage(t *testing.T) {
	c := newConn(buffered{Reader: strings.NewReader("")}, most)
	if err := c.sendMessage(5); err == nil {
		t.Error("sent")
	}
	if err := c.receiveMessage(5, nil); err == nil {
		t.Error("received")
	}
}
