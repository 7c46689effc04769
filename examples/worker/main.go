// Worker does some work while it holds a token of a limit on workers, as a lease. If the
// program dies, the token goes back by itself.
//
//	go run ./examples/worker --targets 127.0.0.1:7000 --entity acme/workers
package main

import (
	"context"
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
	entity := flag.String("entity", "acme/workers", "the entity")
	length := flag.Duration("work", 10*time.Second, "how long the work takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Split(*targets, ","), *entity, *length); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addresses []string, entity string, length time.Duration) error {
	var cfg client.Config
	for _, a := range addresses {
		cfg.Targets = append(cfg.Targets, client.Target{Address: a})
	}
	c, err := client.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()

	lease, err := c.AcquireLease(ctx, entity, 1, 5*time.Second, client.Holder("worker"))
	if err != nil {
		return err
	}
	fmt.Println("working under lease", lease.Name)
	held, release := lease.Keep(ctx)
	err = work(held, length)
	release()
	if _, rerr := lease.Return(context.Background(), 0); rerr != nil {
		fmt.Fprintln(os.Stderr, "the token goes back when its lease ends:", rerr)
	}
	return err
}

// work ends early if the lease is lost, since another worker may have the token then.
func work(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		fmt.Println("done")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
