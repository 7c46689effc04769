package peers

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestCable: bytes come back after both ways, in order, and also if many are under way.
func TestCable(t *testing.T) {
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					if _, err := fmt.Fprintf(conn, "%s!\n", lines.Text()); err != nil {
						return
					}
				}
			}()
		}
	}()
	const way = 30 * time.Millisecond
	cable, err := NewCable(t.Context(), server.Addr().String(), way)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", cable.Addr())
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(conn)
	began := time.Now()
	for i := range 100 {
		if _, err := fmt.Fprintln(conn, i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if !answers.Scan() || answers.Text() != fmt.Sprintf("%d!", i) {
			t.Fatalf("%q", answers.Text())
		}
	}
	if took := time.Since(began); took < 2*way || took > 20*way {
		t.Errorf("took %v", took)
	}
	if err := cable.Close(); err != nil {
		t.Error(err)
	}
	if answers.Scan() {
		t.Error("a closed cable answers")
	}
	_ = conn.Close()
}
