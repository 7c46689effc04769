package local_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/httpapi"
)

// TestMain lets this test program play the part of samya: started with "site"
// or "appmgr" it serves /readyz until it is told to stop. Started with a flag it is etcd.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--name" {
		os.Exit(etcd(os.Args[2:]))
	}
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
	seats := fs.String("seats", "", "")
	node := fs.String("node", "", "")
	for _, ignored := range []string{"log", "etcd-endpoints", "name", "region", "cluster", "gossip", "preset", "join", "grpc", "members", "latency"} {
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
		if *node != "" && os.WriteFile(filepath.Join(*data, "node"), nil, 0o600) != nil {
			return 3
		}
	}
	if os.Getenv("SAMYA_TEST_SECRET") != "" {
		fmt.Fprintln(os.Stderr, "the caller's environment is seen")
		return 4
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	members := &seating{states: make(map[string]string)}
	for site := range strings.SplitSeq(*seats, "+") {
		members.states[site] = "member"
	}
	server := &http.Server{Addr: *addr, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/members"):
			_ = json.NewEncoder(w).Encode(members.answer(r))
		case *node > "a":
			http.Error(w, "not ready: node "+*node+" follows", http.StatusServiceUnavailable)
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

// etcd is a member of etcd that does nothing but be healthy.
func etcd(args []string) int {
	for i, arg := range args {
		if arg == "--listen-client-urls" {
			mux := http.NewServeMux()
			mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
			fmt.Fprintln(os.Stderr, http.ListenAndServe(strings.TrimPrefix(args[i+1], "http://"), mux))
		}
	}
	return 1
}

// seating are the sites of a cluster, as a single app manager knows them. It logs what it is
// asked for. A site that drains is gone at the second look, and one that joins is a
// member.
type seating struct {
	mu     sync.Mutex
	states map[string]string
}

func (s *seating) answer(r *http.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := httpapi.Members{Version: 1}
	if r.Method == http.MethodGet {
		for site, state := range s.states {
			all.Members = append(all.Members, httpapi.Member{Name: site, State: state})
			switch m := &all.Members[len(all.Members)-1]; state {
			case "draining":
				m.WaitsFor, s.states[site] = "3 entities to be handed over", "gone"
			case "joining":
				s.states[site] = "member"
			}
		}
		return all
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Printf("%s %s%s\n", r.Method, strings.TrimPrefix(r.URL.RequestURI(), "/v1/members"), body)
	site, drained := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/members/"), ":drain")
	var in struct {
		Name string `json:"name"`
	}
	switch _ = json.Unmarshal(body, &in); {
	case in.Name != "":
		s.states[in.Name] = "joining"
	case drained:
		s.states[site] = "draining"
	case r.URL.Query().Get("lost") == "true":
		s.states[site] = "lost"
	default:
		s.states[site] = "gone"
	}
	return httpapi.ChangedMember{}
}
