package local_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMain lets this test program play the part of samya: started with "site"
// or "appmgr" it serves /readyz until it is told to stop.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "site" || os.Args[1] == "appmgr") {
		os.Exit(child(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// child is a samya process that does nothing but be there.
func child(args []string) int {
	fs := flag.NewFlagSet("child", flag.ContinueOnError)
	addr := fs.String("http", "", "")
	data := fs.String("data", "", "")
	fails := fs.Bool("fails", false, "")
	stubborn := fs.Bool("stubborn", false, "")
	for _, ignored := range []string{"name", "region", "cluster", "gossip", "preset", "join", "grpc", "members", "latency"} {
		fs.String(ignored, "", "")
	}
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if *fails {
		fmt.Fprintln(os.Stderr, "it cannot go on")
		return 1
	}
	if *data != "" {
		if err := os.MkdirAll(*data, 0o700); err != nil {
			return 3
		}
		if err := os.WriteFile(filepath.Join(*data, "books"), nil, 0o600); err != nil {
			return 3
		}
	}
	if os.Getenv("SAMYA_TEST_SECRET") != "" {
		fmt.Fprintln(os.Stderr, "the caller's environment is seen")
		return 4
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	server := &http.Server{Addr: *addr, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/members" {
			body, _ := io.ReadAll(r.Body)
			fmt.Printf("%s %s\n", r.Method, body)
			_, _ = io.WriteString(w, "{}")
		}
	})}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case <-stop.Done():
	}
	if *stubborn {
		select {}
	}
	return 0
}
