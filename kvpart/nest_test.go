package kvpart_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/internal/waittest"
	"github.com/samya-db/samya/kvpart/sched"
)

// uses are the requests to a store that wait for partitions.
func uses(s *kvpart.Store, key string) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"read":   func() error { _, err := s.Read(ctx, key, nil); return err },
		"write":  func() error { return s.Write(ctx, key, []byte("nested")) },
		"load":   func() error { return s.Load(ctx, key, []byte("nested")) },
		"delete": func() error { return s.Delete(ctx, key) },
		"scan":   func() error { _, err := s.Scan(ctx, key, 2, nil); return err },
		"execute": func() error {
			return s.Execute(ctx, []string{key}, func(tx kvpart.Tx) error { return tx.Delete(key) })
		},
		"reassign": func() error { return s.Reassign(func(string) int { return -1 }) },
		"close":    s.Close,
	}
}

// started is a request of Start, which only workers have.
func started(s *kvpart.Store, key string) func() error {
	return func() error {
		return s.Start(context.Background(), &kvpart.Request{Kind: kvpart.DeleteRequest, Key: key, Done: func(*kvpart.Request) {}})
	}
}

// withEarly are all strategies, and a threaded store with each way of early scheduling, as
// openNested takes them.
func withEarly() []kvpart.Strategy {
	all := kvpart.Strategies()
	for _, s := range kvpart.Schedulers()[1:] {
		all = append(all, kvpart.Threaded+" "+kvpart.Strategy(s))
	}
	return all
}

func openNested(t *testing.T, strategy kvpart.Strategy) *kvpart.Store {
	t.Helper()
	o := kvpart.Options{Strategy: strategy, Partitions: 3, Backend: "btree"}
	if name, scheduler, early := strings.Cut(string(strategy), " "); early {
		o.Strategy, o.Scheduler, o.Threads = kvpart.Strategy(name), kvpart.Scheduler(scheduler), 2
	}
	s := open(t, o)
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := s.Write(t.Context(), key, []byte("kept")); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// deep calls fn with another stack.
func deep(n int, fn func() error) error {
	var room [256]byte
	if n > 0 {
		err := deep(n-1, fn)
		runtime.KeepAlive(&room)
		return err
	}
	return fn()
}

// A function of Execute that uses its store, with its own key or another key, gets an
// error, and nothing is done.
func TestNested(t *testing.T) {
	for _, strategy := range withEarly() {
		if !t.Run(string(strategy), func(t *testing.T) {
			s := openNested(t, strategy)
			for _, key := range []string{"a", "b", "c", "d", "new"} {
				calls := uses(s, key)
				if strings.Contains(string(strategy), "threaded") {
					calls["start"] = started(s, key)
				}
				for what, call := range calls {
					waittest.Returns(t, what+" of "+key, func() {
						err := s.Execute(context.Background(), []string{"a", "d"}, func(kvpart.Tx) error {
							if st := s.Stats(); st.Keys != 4 {
								t.Errorf("%d keys", st.Keys)
							}
							if err := call(); !errors.Is(err, kvpart.ErrNested) {
								t.Errorf("%s of %s: %v", what, key, err)
							}
							return deep(1000, call)
						})
						if !errors.Is(err, kvpart.ErrNested) {
							t.Errorf("%s of %s, with a grown stack: %v", what, key, err)
						}
					})
				}
			}
			if err := holds(s, map[string]string{"a": "kept", "b": "kept", "c": "kept", "d": "kept"}); err != nil {
				t.Error(err)
			}
			closing(t, s)
		}) {
			return // waiting takes long
		}
	}
}

// Functions of Execute may use other stores, even within each other.
func TestNestedInAnotherStore(t *testing.T) {
	for _, strategy := range withEarly() {
		s, other := openNested(t, strategy), openNested(t, strategy)
		waittest.Returns(t, string(strategy), func() {
			if err := s.Execute(context.Background(), []string{"a"}, func(tx kvpart.Tx) error {
				v, err := other.Read(context.Background(), "a", nil)
				if err != nil {
					return err
				}
				if err := other.Execute(context.Background(), []string{"a"}, func(tx kvpart.Tx) error { return tx.Delete("a") }); err != nil {
					return err
				}
				if err := other.Write(context.Background(), "e", v); err != nil {
					return err
				}
				return tx.Put("a", []byte("new"))
			}); err != nil {
				t.Error(strategy, err)
			}
		})
		if err := errors.Join(
			holds(s, map[string]string{"a": "new", "b": "kept", "c": "kept", "d": "kept"}),
			holds(other, map[string]string{"b": "kept", "c": "kept", "d": "kept", "e": "kept"}),
		); err != nil {
			t.Error(strategy, err)
		}
		closing(t, s)
		closing(t, other)
	}
}

// While a function runs, other goroutines use the store: free keys at once, and keys of
// the function after its end.
func TestBesideAFunction(t *testing.T) {
	for _, strategy := range withEarly() {
		s := openNested(t, strategy)
		free := make(chan error, 1)
		waits := make(chan error, 1)
		waittest.Returns(t, string(strategy), func() {
			if err := s.Execute(context.Background(), []string{"a"}, func(kvpart.Tx) error {
				go func() { _, err := s.Read(context.Background(), "a", nil); waits <- err }()
				if strategy == kvpart.Bare {
					return nil
				}
				go func() {
					// This goroutine had a function too, which has ended.
					err := s.Execute(context.Background(), []string{"b"}, func(tx kvpart.Tx) error { return tx.Delete("b") })
					free <- errors.Join(err, s.Write(context.Background(), "b", nil))
				}()
				return <-free
			}); err != nil {
				t.Error(strategy, err)
			}
			if err := <-waits; err != nil {
				t.Error(strategy, err)
			}
		})
		closing(t, s)
	}
}

// After a function that panicked or ended its goroutine, the goroutine may use the store.
func TestAfterAFunctionThatPanics(t *testing.T) {
	for _, strategy := range withEarly() {
		if strategy == kvpart.Bare {
			continue // it does not recover
		}
		s := openNested(t, strategy)
		for range 3 {
			var panicked *sched.PanicError
			if err := s.Execute(t.Context(), []string{"a"}, func(kvpart.Tx) error { panic("of a test") }); !errors.As(err, &panicked) {
				t.Error(strategy, err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				// In stores without workers it does not return.
				_ = s.Execute(context.Background(), []string{"a"}, func(kvpart.Tx) error { runtime.Goexit(); return nil })
			}()
			<-ended
			if err := s.Write(t.Context(), "a", []byte("1")); err != nil {
				t.Error(strategy, err)
			}
		}
		closing(t, s)
	}
}
