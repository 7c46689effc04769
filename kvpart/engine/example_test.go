package engine_test

import (
	"context"
	"fmt"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
	_ "github.com/samya-db/samya/kvpart/engine/hash"
)

// counting is a backend of one's own: another engine, with a count of its writes.
type counting struct {
	engine.Engine
	writes *int
}

func (c counting) Put(key string, value []byte) error {
	*c.writes++
	return c.Engine.Put(key, value)
}

// A package of a backend calls Register in init; here the function main would.
func ExampleRegister() {
	inner, err := engine.Lookup("hash")
	if err != nil {
		fmt.Println(err)
		return
	}
	writes := 0
	engine.Register("counting", engine.Factory{Open: func(c engine.Config) (engine.Engine, error) {
		e, err := inner.Open(c)
		return counting{e, &writes}, err
	}})
	store, err := kvpart.Open(kvpart.Options{Strategy: kvpart.Soft, Partitions: 2, Backend: "counting"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 3 {
		if err := store.Write(ctx, "key", []byte("value")); err != nil {
			fmt.Println(err)
		}
	}
	value, err := store.Read(ctx, "key", nil)
	fmt.Println(string(value), writes, err, store.Close())
	// Output: value 3 <nil> <nil>
}
