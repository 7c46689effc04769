package proc_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/samya-db/samya/devcluster/proc"
)

// TestMain lets this test program play the part of samya. Started with "site" or "appmgr"
// it serves /readyz on its ports, and behaves as its marker files say.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && (os.Args[1] == "site" || os.Args[1] == "appmgr"):
		os.Exit(child(os.Args[2:]))
	case len(os.Args) == 3 && os.Args[1] == "parent":
		os.Exit(parent(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// child is a samya process that does nothing. A file NAME.fails in the
// directory above its log makes it fail at the start.
func child(args []string) int {
	fs := flag.NewFlagSet("child", flag.ContinueOnError)
	name := fs.String("name", "", "")
	httpAddr := fs.String("http", "", "")
	grpc := fs.String("grpc", "", "")
	gossip := fs.String("gossip", "", "")
	data := fs.String("data", "", "")
	lifeline := fs.Bool("exit-with-stdin", false, "")
	stubborn := fs.Bool("stubborn", false, "")
	failOnce := fs.String("fail-once", "", "")
	for _, ignored := range []string{"region", "cluster", "preset", "latency", "members", "join"} {
		fs.String(ignored, "", "")
	}
	fs.Usage = func() {}
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if *failOnce != "" {
		// The first process that gets here fails, as if its port were taken.
		if f, err := os.OpenFile(*failOnce, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			fmt.Fprintln(os.Stderr, "listen tcp: bind: address already in use")
			return 1
		}
	}
	if *data != "" {
		if err := os.MkdirAll(*data, 0o700); err != nil {
			return 3
		}
	}
	for _, addr := range []string{*grpc, *gossip} {
		if addr == "" {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = l.Close() }()
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if *lifeline {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/die", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, *name, "is told to die")
		os.Exit(7)
	})
	server := &http.Server{Addr: *httpAddr, Handler: mux}
	go func() {
		if err := server.ListenAndServe(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	fmt.Println(*name, "starts")
	<-stop.Done()
	if *stubborn {
		select {}
	}
	fmt.Println(*name, "stops")
	return 0
}

// parent starts a cluster, writes its process ids to a file in dir and waits
// to be killed.
func parent(dir string) int {
	c, err := proc.Start(context.Background(), config(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var ids string
	for _, p := range append(c.Sites(), c.AppManagers()...) {
		ids += fmt.Sprintln(p.PID())
	}
	temporary := filepath.Join(dir, "ids.new")
	if err := os.WriteFile(temporary, []byte(ids), 0o600); err != nil {
		return 1
	}
	if err := os.Rename(temporary, filepath.Join(dir, "ids")); err != nil {
		return 1
	}
	select {}
}

// config is a cluster of this test program.
func config(dir string) proc.Config {
	bin, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return proc.Config{Bin: bin, Dir: dir, Sites: []string{"us", "eu"}, AppManagers: []string{"us"}, Grace: 2 * time.Second}
}
