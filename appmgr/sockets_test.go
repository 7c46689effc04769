package appmgr

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestCallerHangsUp: a caller who goes away ends the call at the site.
func TestCallerHangsUp(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	site, gossip := realSite(t, "us")
	entered, ended := make(chan struct{}), make(chan struct{})
	site.OnAcquire = func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	m, _ := running(t, gossip.Addr())
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.HTTPAddr()+"/v1/entities/a:acquire", strings.NewReader(`{"tokens":1,"wait":"60s"}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-entered
		hangUp()
	}()
	resp, err := http.DefaultClient.Do(req)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v, %v", resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the call goes on at the site")
	}
}

// TestAConnectionNotUsedYetStays: clients open connections ahead of need. If the server
// ended such a connection, a request sent at that moment would have no answer.
func TestAConnectionNotUsedYetStays(t *testing.T) {
	t.Parallel() // It takes 6 s, and does nothing.
	_, gossip := realSite(t, "us")
	m, _ := running(t, gossip.Addr())
	conn, err := net.Dial("tcp", m.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(headerTime + time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection ends: %v", err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if got, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRawHTTP sends requests that no HTTP client would send.
func TestRawHTTP(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	_, gossip := realSite(t, "us")
	m, _ := running(t, gossip.Addr())
	for _, c := range []struct{ what, send, want string }{
		{"a header too large", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		{"a body too large, unannounced", "POST /v1/entities HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n", 5) + "0\r\n\r\n", "HTTP/1.1 413 "},
		{"a body too large, announced", "POST /v1/entities HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n", "HTTP/1.1 413 "},
		{"an absolute path", "GET http://elsewhere/livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "},
		{"no path", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "HTTP/1.1 "},
		{"bad percent-encoding", "GET /v1/entities/%zz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 "},
		{"garbage", "\x16\x03\x01\x00\xff\r\n\r\n", "HTTP/1.1 400 "},
	} {
		conn, err := net.Dial("tcp", m.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		// The server may answer and hang up before it has read all.
		_, _ = io.Copy(conn, strings.NewReader(c.send))
		got := make([]byte, 64)
		n, err := io.ReadAtLeast(conn, got, len(c.want))
		if !bytes.HasPrefix(got[:n], []byte(c.want)) {
			t.Errorf("%s: %q, %v; want %q", c.what, got[:n], err, c.want)
		}
		conn.Close()
	}
	if resp, err := http.Get("http://" + m.HTTPAddr() + "/livez"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %v", err)
	} else {
		resp.Body.Close()
	}
}
