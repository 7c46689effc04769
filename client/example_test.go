package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/site"
)

// aSite starts a site that is a cluster by itself, with an entity acme/seats of 100. It
// returns the address and a function that stops the site.
func aSite() (address string, stop func()) {
	dir, err := os.MkdirTemp("", "samya-example-")
	if err != nil {
		panic(err)
	}
	s, err := site.New(site.Config{
		Config: node.Config{
			Cluster: "example", Name: "us", Region: "us", GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Gossip: node.Gossip{Bind: "127.0.0.1:0"}, Preset: "local",
		},
		DataDir: dir, Members: []string{"us"},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: s.GRPCAddr()}}})
	if err != nil {
		panic(err)
	}
	if err := errors.Join(c.CreateEntity(ctx, "acme/seats", 100), c.Close(ctx)); err != nil {
		panic(err)
	}
	return s.GRPCAddr(), func() {
		cancel()
		if err := errors.Join(<-done, os.RemoveAll(dir)); err != nil {
			panic(err)
		}
	}
}

func Example() {
	address, stop := aSite()
	defer stop()
	ctx := context.Background()

	c, err := client.New(client.Config{
		Region:  "us",
		Targets: []client.Target{{Address: address, Region: "us"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	grant, err := c.Acquire(ctx, "acme/seats", 3)
	fmt.Println(grant.Tokens, grant.Left, err)

	// A refusal tells how many tokens are left.
	_, err = c.Acquire(ctx, "acme/seats", 98, client.Wait(0))
	var e *client.Error
	if errors.Is(err, client.ErrOutOfTokens) && errors.As(err, &e) {
		fmt.Println(e.Left, "left")
	}
	// No acquire can have more than the limit.
	_, err = c.Acquire(ctx, "acme/seats", 500)
	if errors.Is(err, client.ErrExceedsLimit) && errors.As(err, &e) {
		fmt.Println(e.Limit, "at most")
	}

	// Rather fewer than none.
	rest, err := c.Acquire(ctx, "acme/seats", 500, client.Wait(0), client.AtLeast(1))
	fmt.Println(rest.Tokens, err)
	receipt, err := c.Release(ctx, "acme/seats", grant.Tokens+rest.Tokens)
	fmt.Println(receipt.Tokens, receipt.Left, err)
	// Output:
	// 3 97 <nil>
	// 97 left
	// 100 at most
	// 97 <nil>
	// 100 100 <nil>
}

func ExampleClient_Batch() {
	address, stop := aSite()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: address}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	results, err := c.Batch(ctx,
		client.AcquireOp("acme/seats", 30),
		client.AcquireOp("acme/beds", 1),
		client.AcquireOp("acme/seats", 20, client.RequestID("order-17")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Tokens, r.Err)
	}
	e, err := c.Entity(ctx, "acme/seats")
	fmt.Println(e.Acquired, "of", e.Limit, err)
	// Output:
	// 30 <nil>
	// 0 samya: no entity "acme/beds"
	// 20 <nil>
	// 50 of 100 <nil>
}

// An acquire takes tokens from its entity and from all entities above it. Several
// entities are acquired together or not at all.
func ExampleClient_AcquireAll() {
	address, stop := aSite()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: address}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	err = errors.Join(
		c.CreateEntity(ctx, "acme", 50),
		c.CreateEntity(ctx, "acme/beds", 1000, client.Below("acme")),
		c.MoveEntity(ctx, "acme/seats", "acme"),
	)
	fmt.Println(err)
	_, err = c.AcquireAll(ctx, []client.Part{{Entity: "acme/seats", Tokens: 30}, {Entity: "acme/beds", Tokens: 15}})
	fmt.Println(err)
	e, err := c.Entity(ctx, "acme")
	fmt.Println(e.Acquired, "of", e.Limit, err)

	// A refusal names the entity that lacked tokens.
	_, err = c.Acquire(ctx, "acme/beds", 7, client.Wait(0))
	if refused, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(refused.Left, "left of", refused.Lacking)
	}
	// Output:
	// <nil>
	// <nil>
	// 45 of 50 <nil>
	// 5 left of acme
}

// A lease holds tokens while work is done that needs them, and not longer.
func ExampleLease_Keep() {
	address, stop := aSite()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: address}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	lease, err := c.AcquireLease(ctx, "acme/seats", 10, 30*time.Second, client.Holder("job-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	held, end := lease.Keep(ctx) // Renews it, and ends if that fails.
	fmt.Println("working, lost:", held.Err() != nil)
	end()

	kept, returned, err := lease.Commit(ctx, 4)
	fmt.Println("kept", kept, "returned", returned, err)
	// Output:
	// working, lost: false
	// kept 4 returned 6 <nil>
}

// Resuming an operation finds out its outcome: the operation counts once.
func ExampleResume() {
	address, stop := aSite()
	defer stop()
	ctx := context.Background()
	c, err := client.New(client.Config{Targets: []client.Target{{Address: address}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	grant, err := c.Acquire(ctx, "acme/seats", 3)
	for errors.Is(err, client.ErrOutcomeUnknown) {
		grant, err = c.Acquire(ctx, "acme/seats", 3, client.Resume(err))
	}
	fmt.Println(grant.Tokens, err)
	// Output: 3 <nil>
}
