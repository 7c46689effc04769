// Llm-gateway stands before an LLM's endpoint (POST /v1/chat/completions, as OpenAI has it)
// and keeps budgets of tokens that all regions share: a budget of each team for a day, and
// its tokens a minute. It reserves an estimate before each call, and settles the tokens
// used after it.
//
//	go run ./examples/llm-gateway --targets 127.0.0.1:7000 --team acme
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/samya-db/samya/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	g := &gateway{log: slog.Default()}
	targets := flag.String("targets", "127.0.0.1:7000", "gRPC addresses of app managers or sites, separated by commas; first the nearest")
	listen := flag.String("listen", "127.0.0.1:8088", "address to serve on")
	keys := flag.String("keys", "", "JSON file with the team of each API key; without it the field X-Team is believed")
	team := flag.String("team", "", "create budgets for this team, unless it has some")
	day := flag.Int64("day", 200_000, "tokens a day of --team")
	minute := flag.Int64("minute", 10_000, "tokens a minute of --team")
	flag.StringVar(&g.backend, "backend", "", "URL of the LLM's endpoint without /v1/chat/completions; empty: a stand-in")
	flag.StringVar(&g.backendKey, "backend-key", os.Getenv("LLM_API_KEY"), "API key of the endpoint")
	flag.Int64Var(&g.bytesPerToken, "bytes-per-token", 3, "how a prompt's tokens are estimated; 1 is never too few")
	flag.Int64Var(&g.maxTokens, "max-tokens", 1000, "max_tokens of requests that have none")
	flag.BoolVar(&g.failOpen, "fail-open", false, "let requests pass while samya cannot be reached")
	flag.BoolVar(&g.chargeFailures, "charge-failures", false, "charge the estimate of the prompt if the endpoint fails")
	flag.DurationVar(&g.budgets.wait, "wait", time.Second, "how long a request may wait for tokens, 0s to 1m")
	flag.DurationVar(&g.budgets.ttl, "lease", 30*time.Second, "after how long the tokens of a gateway that died come back")
	patience := flag.Duration("patience", 3*time.Second, "how long to try while samya cannot be reached")
	flag.Parse()

	var err error
	if g.keys, err = readKeys(*keys); err != nil {
		return err
	}
	if g.budgets.samya, err = connect(strings.Split(*targets, ","), *patience); err != nil {
		return err
	}
	defer func() { _ = g.budgets.samya.Close(context.Background()) }()
	if *team != "" {
		if err := g.budgets.create(ctx, *team, *day, *minute); err != nil {
			return err
		}
	}
	return serve(ctx, *listen, g)
}

// readKeys reads the team of each API key; nil for no file.
func readKeys(file string) (keys map[string]string, err error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	if err != nil {
		return nil, fmt.Errorf("read the API keys: %w", err)
	}
	return keys, nil
}

// connect makes a client that tries for so long, beside the wait for tokens.
func connect(addresses []string, patience time.Duration) (*client.Client, error) {
	cfg := client.Config{Timeout: patience}
	for _, a := range addresses {
		cfg.Targets = append(cfg.Targets, client.Target{Address: a})
	}
	return client.New(cfg)
}

// serve serves the gateway, and beside it the stand-in if no backend is named, until ctx
// ends.
func serve(ctx context.Context, listen string, g *gateway) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", g)
	if g.backend == "" {
		g.backend = "http://" + l.Addr().String() + "/stand-in"
		mux.Handle("/stand-in/", http.StripPrefix("/stand-in", standIn{}))
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		// Requests under way are settled.
		stopped <- server.Shutdown(context.Background())
	}()
	g.log.Info("serving", "at", l.Addr().String(), "backend", g.backend)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
