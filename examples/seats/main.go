// Seats takes some seats of a customer's quota, holds them for a while, and gives
// them back.
//
//	go run ./examples/seats --targets 127.0.0.1:7000 --entity acme/seats --tokens 3
//	go run ./examples/seats --targets 127.0.0.1:7000 --tls-ca ca.pem --token-file shop.token
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/samya-db/samya/client"
)

func main() {
	targets := flag.String("targets", "127.0.0.1:7000", "gRPC addresses of app managers or sites, separated by commas")
	entity := flag.String("entity", "acme/seats", "the entity")
	tokens := flag.Int64("tokens", 1, "how many seats")
	hold := flag.Duration("hold", 5*time.Second, "for how long")
	ca := flag.String("tls-ca", "", "file with the CA that the targets' certificates are of; without one nothing is encrypted")
	token := flag.String("token-file", "", "file with the token to be known by")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := config(ctx, strings.Split(*targets, ","), *ca, *token)
	if err == nil {
		err = run(ctx, cfg, *entity, *tokens, *hold)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config returns the configuration: addresses to ask, the CA to trust and the token to
// show.
func config(ctx context.Context, addresses []string, ca, token string) (cfg client.Config, err error) {
	for _, a := range addresses {
		cfg.Targets = append(cfg.Targets, client.Target{Address: a})
	}
	if ca != "" {
		cfg.Security, err = client.TLSFiles{CA: ca}.Credentials(ctx)
	}
	if token != "" {
		cfg.Token = client.TokenFile(token)
	}
	return cfg, err
}

func run(ctx context.Context, cfg client.Config, entity string, tokens int64, hold time.Duration) error {
	c, err := client.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()

	grant, err := c.Acquire(ctx, entity, tokens, client.Wait(2*time.Second))
	var e *client.Error
	switch {
	case errors.Is(err, client.ErrOutOfTokens) && errors.As(err, &e):
		return fmt.Errorf("only %d left, ask again in %v", e.Left, e.RetryAfter)
	case err != nil:
		return err
	}
	fmt.Printf("%d seats of site %s, which has %d left\n", grant.Tokens, grant.Site, grant.Left)
	select {
	case <-time.After(hold):
	case <-ctx.Done():
	}
	if err := giveBack(c, entity, grant.Tokens); err != nil {
		return err
	}
	fmt.Println("given back")
	return nil
}

// giveBack releases tokens, also after an interrupt, and repeats the release until its
// outcome is known: a resumed release counts once.
func giveBack(c *client.Client, entity string, tokens int64) error {
	_, err := c.Release(context.Background(), entity, tokens)
	for errors.Is(err, client.ErrOutcomeUnknown) {
		_, err = c.Release(context.Background(), entity, tokens, client.Resume(err))
	}
	return err
}
