package kvpart_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/kvpart"
)

func ExampleOpen() {
	store, err := kvpart.Open(kvpart.Options{
		Strategy:   kvpart.Threaded,
		Partitions: 4,
		Backend:    "btree",
		Policy:     kvpart.Policy{Kind: kvpart.Async, Every: time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, fruit := range []string{"apple", "pear", "plum"} {
		if err := store.Write(ctx, fruit, []byte("1 basket")); err != nil {
			fmt.Println(err)
		}
	}
	// Both keys change at the same instant, wherever they are.
	err = store.Execute(ctx, []string{"apple", "pear"}, func(tx kvpart.Tx) error {
		if _, err := tx.Get("apple", nil); err != nil {
			return err
		}
		if err := tx.Put("pear", []byte("2 baskets")); err != nil {
			return err
		}
		return tx.Delete("apple")
	})
	if err != nil {
		fmt.Println(err)
	}
	pairs, err := store.Scan(ctx, "a", 10, nil)
	for _, p := range pairs {
		fmt.Printf("%s: %s\n", p.Key, p.Value)
	}
	_, missing := store.Read(ctx, "apple", nil)
	fmt.Println(err, errors.Is(missing, kvpart.ErrNotFound), store.Close())
	// Output:
	// pear: 2 baskets
	// plum: 1 basket
	// <nil> true <nil>
}

// Requests of Start run in the order in which they were started; a channel tells of their
// end. They need workers.
func ExampleStore_Start() {
	store, err := kvpart.Open(kvpart.Options{Strategy: kvpart.Threaded, Partitions: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	done := make(chan *kvpart.Request, 2)
	tell := func(r *kvpart.Request) { done <- r }
	for _, r := range []*kvpart.Request{
		{Kind: kvpart.WriteRequest, Key: "pear", Value: []byte("2 baskets"), Done: tell},
		{Kind: kvpart.ReadRequest, Key: "pear", Done: tell},
	} {
		if err := store.Start(ctx, r); err != nil {
			fmt.Println(err)
		}
	}
	<-done
	r := <-done
	fmt.Println(string(r.Value), r.Err, store.Close())
	// Output: 2 baskets <nil> <nil>
}

// With a policy, keys that are used together come to the same partition. Stats tells how
// many requests still ran on several.
func ExampleStore_Stats() {
	store, err := kvpart.Open(kvpart.Options{
		Strategy: kvpart.Soft, Partitions: 2,
		// A cut every 100 operations, with all requests recorded.
		Policy: kvpart.Policy{Kind: kvpart.Base, Operations: 100, Gain: -1, Share: 1, Sample: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	use := func() {
		for _, pair := range [][]string{{"left", "right"}, {"up", "down"}} {
			if err := store.Execute(ctx, pair, func(tx kvpart.Tx) error { return tx.Put(pair[0], nil) }); err != nil {
				fmt.Println(err)
			}
		}
	}
	for store.Stats().Applied == 0 {
		use()
	}
	before := store.Stats()
	for range 5 {
		use()
	}
	after := store.Stats()
	fmt.Println(after.Operations-before.Operations, after.Multi-before.Multi, store.Close())
	// Output: 10 0 <nil>
}

// The function of an Execute uses its Tx, not the store.
func ExampleStore_Execute() {
	store, err := kvpart.Open(kvpart.Options{Strategy: kvpart.Soft})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = store.Execute(ctx, []string{"visits"}, func(tx kvpart.Tx) error {
		return tx.Put("visits", []byte("1"))
	})
	fmt.Println(err)
	err = store.Execute(ctx, []string{"visits"}, func(kvpart.Tx) error {
		return store.Write(ctx, "visits", []byte("2"))
	})
	fmt.Println(errors.Is(err, kvpart.ErrNested), store.Close())
	// Output:
	// <nil>
	// true <nil>
}
