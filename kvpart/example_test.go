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
