package kvpart

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
)

// faultyStore opens a store; its engines ask fail before each call.
func faultyStore(t *testing.T, o Options, fail func(op enginetest.Op, key string) error) *Store {
	t.Helper()
	f, err := engine.Lookup(o.Backend)
	if err != nil {
		t.Fatal(err)
	}
	faulty := enginetest.Faulty(f, fail)
	o.Engine = &faulty
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStartedTellsErrors: a request of Start is told its error.
func TestStartedTellsErrors(t *testing.T) {
	var failing enginetest.Op
	s := faultyStore(t, Options{Strategy: Threaded, Partitions: 2, Backend: "btree"}, func(op enginetest.Op, _ string) error {
		if op == failing {
			return errFails
		}
		return nil
	})
	for op, r := range map[enginetest.Op]Request{
		enginetest.OpGet:    {Kind: ReadRequest, Key: "k"},
		enginetest.OpPut:    {Kind: WriteRequest, Key: "k", Value: []byte("2")},
		enginetest.OpDelete: {Kind: DeleteRequest, Key: "k"},
		enginetest.OpGather: {Kind: ScanRequest, Limit: 3},
	} {
		if err := s.Write(t.Context(), "k", []byte("1")); err != nil {
			t.Fatal(err)
		}
		failing = op
		done := make(chan error, 1)
		r.Done = func(r *Request) { done <- r.Err }
		if err := s.Start(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, errFails) {
			t.Errorf("a %s that failed: %v", op, err)
		}
		failing = ""
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGivenUpWriteHasItsValue: a write given up while it runs writes the value as given,
// whatever its caller does with the memory of the value since.
func TestGivenUpWriteHasItsValue(t *testing.T) {
	for _, backend := range []string{"btree", "bbolt"} {
		inside, leave := make(chan struct{}), make(chan struct{})
		o := Options{Strategy: Threaded, Partitions: 2, Backend: backend}
		if backend == "bbolt" {
			o.Dirs = []string{t.TempDir()}
		}
		s := faultyStore(t, o, func(op enginetest.Op, _ string) error {
			if op == enginetest.OpPut {
				close(inside)
				<-leave
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		value := []byte("as given")
		got := make(chan error)
		go func() { got <- s.Write(ctx, "k", value) }()
		<-inside
		cancel()
		if err := <-got; !errors.Is(err, ErrUnknown) {
			t.Fatalf("a write that was given up: %v", err)
		}
		copy(value, "scribble")
		close(leave)
		if v, err := s.Read(context.Background(), "k", nil); err != nil || string(v) != "as given" {
			t.Errorf("%s: found %q, %v", backend, v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTransactionIsOver: a transaction kept by its function cannot be used afterwards.
func TestTransactionIsOver(t *testing.T) {
	for _, strategy := range Strategies() {
		s, err := Open(Options{Strategy: strategy, Partitions: 2, Backend: "btree"})
		if err != nil {
			t.Fatal(err)
		}
		var kept Tx
		if err := s.Execute(t.Context(), []string{"a"}, func(tx Tx) error { kept = tx; return tx.Put("a", []byte("1")) }); err != nil {
			t.Fatal(err)
		}
		_, read := kept.Get("a", nil)
		for what, err := range map[string]error{"get": read, "put": kept.Put("a", nil), "delete": kept.Delete("a")} {
			if !errors.Is(err, errOver) {
				t.Errorf("%s: a %s of a transaction that is over: %v", strategy, what, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPutAgain: a transaction that puts a key several times writes the last value, and
// the values put under other keys meanwhile.
func TestPutAgain(t *testing.T) {
	s, err := Open(Options{Strategy: Soft, Partitions: 2, Backend: "btree"})
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{1, 0, 3, 2, 30, 5, 31, 100}
	value := func(size int, c byte) []byte { return bytes.Repeat([]byte{c}, size) }
	for _, first := range sizes {
		for _, second := range sizes {
			err := s.Execute(t.Context(), []string{"a", "b"}, func(tx Tx) error {
				err := errors.Join(tx.Put("a", value(first, '1')), tx.Put("b", value(first, '2')), tx.Put("a", value(second, '3')))
				a, failed := tx.Get("a", nil)
				if b, failed := tx.Get("b", nil); failed != nil || !bytes.Equal(a, value(second, '3')) || !bytes.Equal(b, value(first, '2')) {
					t.Errorf("%d and then %d bytes: found %q and %q within", first, second, a, b)
				}
				return errors.Join(err, failed)
			})
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.Read(t.Context(), "a", nil)
			b, failed := s.Read(t.Context(), "b", nil)
			if err := errors.Join(err, failed); err != nil || !bytes.Equal(a, value(second, '3')) || !bytes.Equal(b, value(first, '2')) {
				t.Errorf("%d and then %d bytes: found %q and %q, %v", first, second, a, b, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
