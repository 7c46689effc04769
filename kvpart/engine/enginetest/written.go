package enginetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
)

// written tests the count of an engine: durable engines alone count.
func written(t *testing.T, f engine.Factory) {
	t.Helper()
	dir := t.TempDir()
	e := open(t, f, dir)
	defer func() { closing(t, e) }()
	c, ok := e.(engine.Counter)
	if !f.Durable && ok {
		t.Fatal("an engine in memory counts what it writes to a disk")
	}
	if !ok {
		return
	}
	noise := make([]byte, 100_000) // noise does not compress
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	last := c.WrittenBytes()
	grows := func(what string, by int, err error) {
		t.Helper()
		check := c.WrittenBytes()
		if err != nil || check < last+int64(by) {
			t.Fatalf("%s: %d bytes after %d, want %d more at least, %v", what, check, last, by, err)
		}
		last = check
	}
	for i := range 50 {
		key := fmt.Sprint("k", i%20)
		grows("put", len(noise), e.Put(key, noise))
		grows("delete", 1, e.Delete(key))
		grows("apply", 2*len(noise), e.Apply([]engine.Write{{Key: key, Value: noise}, {Key: "other", Value: noise}}))
		_, err := e.Get(key, nil)
		grows("get", 0, err)
	}
	// The count is asked for while the engine writes, and while its file grows.
	written := make(chan error, 1)
	go func() {
		for i := range 100 {
			if err := e.Put(fmt.Sprint("beside", i), noise); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for done := false; !done; {
		select {
		case err := <-written:
			grows("put", 0, err)
			done = true
		default:
			grows("count", 0, nil)
		}
	}
	// All that an engine writes for a value is a small multiple of the value.
	if all := int64((50*3 + 100) * len(noise)); last > 10*all {
		t.Errorf("%d bytes were written for values of %d", last, all)
	}
	closing(t, e)
	e = open(t, f, dir)
	if after := e.(engine.Counter).WrittenBytes(); after >= last/2 {
		t.Errorf("opened again, an engine has written %d bytes at once, of %d before", after, last)
	}
}
