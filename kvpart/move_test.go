package kvpart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

const (
	// movedKeys of manyKeys are assigned to another partition: few enough to stay within
	// the generation.
	movedKeys = 4
	manyKeys  = movedKeys * fewMoves
)

// The keys with even numbers are on partition 0, the others on 1. Of the even numbers the
// first movedKeys move.
func nth(i int) string { return fmt.Sprintf("k%02d", i) }

func first(key string) int { return int(key[2]-'0') % 2 }

func moved(key string) int {
	if key < nth(2*movedKeys) {
		return 1
	}
	return first(key)
}

// change is what a client does while values move. It changes now as it is about to change
// the store, calls begins, and changes the store.
type change func(s *Store, now map[string]string, begins func()) error

func writes(key string) change {
	return func(s *Store, now map[string]string, begins func()) error {
		now[key] = "written"
		begins()
		return s.Write(context.Background(), key, []byte("written"))
	}
}

func removes(key string) change {
	return func(s *Store, now map[string]string, begins func()) error {
		delete(now, key)
		begins()
		return s.Delete(context.Background(), key)
	}
}

func executes(put, removed string) change {
	return func(s *Store, now map[string]string, begins func()) error {
		now[put] = "put"
		delete(now, removed)
		begins()
		return s.Execute(context.Background(), []string{put, removed}, func(tx Tx) error {
			return errors.Join(tx.Put(put, []byte("put")), tx.Delete(removed))
		})
	}
}

func reads(s *Store, now map[string]string, begins func()) error {
	begins()
	got, err := contents(s)
	if err == nil && !maps.Equal(got, now) {
		err = fmt.Errorf("reads %v, want %v", got, now)
	}
	return err
}

func assignsBack(s *Store, _ map[string]string, begins func()) error {
	begins()
	return s.Reassign(first)
}

// contents reads all keys, by a scan and one by one.
func contents(s *Store) (map[string]string, error) {
	all := make(map[string]string)
	pairs, err := s.Scan(context.Background(), "", MaxScan, nil)
	for _, p := range pairs {
		all[p.Key] = string(p.Value)
		v, failed := s.Read(context.Background(), p.Key, nil)
		if failed == nil && string(v) != all[p.Key] {
			failed = fmt.Errorf("%s is %q when read and %q when scanned", p.Key, v, all[p.Key])
		}
		err = errors.Join(err, failed)
	}
	return all, err
}

// pause is a point of a move: before or after its copies, or its removals, are written.
type pause struct {
	nth   int
	after bool
}

// crash is an image of the disk, and how many of the client's changes were done.
type crash struct {
	disk *ram
	done int
}

// clash is a move, with a client that does changes at a pause of the move.
type clash struct {
	at      pause
	changes []change
	fails   bool // the engine fails at the pause
	waits   bool // the client may have to wait until the engine goes on

	mu      sync.Mutex
	states  []map[string]string // before and after each change
	done    int                 // changes done
	crashes []crash
	batches int
	stopped bool
	reached chan struct{}
	goOn    chan struct{}
}

// hook takes images of the disk, and stops the move at the pause.
func (c *clash) hook(e *ramEngine, writes []engine.Write, done bool) error {
	c.mu.Lock()
	c.crashes = append(c.crashes, crash{e.ram.image(), c.done})
	stop := !c.stopped && len(writes) == movedKeys && c.at == pause{c.batches, done}
	c.stopped = c.stopped || stop
	if len(writes) == movedKeys && done {
		c.batches++
	}
	c.mu.Unlock()
	if !stop {
		return nil
	}
	close(c.reached)
	<-c.goOn
	if c.fails {
		return errFails
	}
	return nil
}

// client does the changes.
func (c *clash) client(t *testing.T, s *Store) {
	t.Helper()
	for _, change := range c.changes {
		now := maps.Clone(c.states[len(c.states)-1])
		begins := func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.states = append(c.states, now)
		}
		if err := change(s, now, begins); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		c.done++
		c.mu.Unlock()
	}
}

// run fills a store, moves some keys, and judges what is found in the end and after each
// crash.
func (c *clash) run(t *testing.T) {
	t.Helper()
	c.reached, c.goOn = make(chan struct{}), make(chan struct{})
	disk := newRAM()
	o := Options{
		Strategy: Hard, Partitions: 2, Backend: "ram", Engine: disk.factory(),
		Dirs: []string{t.TempDir(), t.TempDir()}, Follow: true,
	}
	s, u := alone(t, o)
	all := make(map[string]string)
	for i := range manyKeys {
		all[nth(i)] = "old"
		if err := s.Write(t.Context(), nth(i), []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	c.states = append(c.states, all)
	if err := s.Reassign(moved); err != nil {
		t.Fatal(err)
	}
	if n := s.Misplaced(); n != movedKeys {
		t.Fatalf("%d keys are to move, want %d", n, movedKeys)
	}
	disk.hook = c.hook
	go u.settle(t.Context())
	synctest.Wait()
	select {
	case <-c.reached:
	default:
		t.Fatal("the move does not come to the pause")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.client(t, s)
	}()
	synctest.Wait()
	select {
	case <-ended:
	default:
		if !c.waits {
			t.Error("the client waits for the engine")
		}
	}
	close(c.goOn)
	<-ended
	synctest.Wait()
	u.settle(t.Context())
	c.judge(t, s, disk, o)
}

// settle takes all steps of the upkeep, without patience.
func (u *upkeep) settle(ctx context.Context) {
	for range 4 { // more than there are failures and strays in a test
		u.following.retry, u.removal, u.following.ended, u.clear = patience{}, patience{}, time.Time{}, clearMost
		for u.step(ctx) {
		}
	}
}

func (c *clash) judge(t *testing.T, s *Store, disk *ram, o Options) {
	t.Helper()
	last := c.states[len(c.states)-1]
	if got, err := contents(s); err != nil || !maps.Equal(got, last) {
		t.Errorf("holds %v in the end, %v, want %v", got, err, last)
	}
	if n := s.Misplaced(); n != 0 {
		t.Errorf("%d keys are not in the engine of their partition", n)
	}
	for key, n := range disk.copies() {
		if n != 1 {
			t.Errorf("%s is in %d engines", key, n)
		}
	}
	if n := s.homes.count.Load(); n != 0 {
		t.Errorf("%d keys have suspects", n)
	}
	var keys int64
	for _, n := range s.Engines() {
		keys += n
	}
	if keys != int64(len(last)) {
		t.Errorf("the engines count %d keys, of %d", keys, len(last))
	}
	if err := s.Close(); (err != nil) != c.fails || err != nil && !errors.Is(err, errFails) {
		t.Errorf("Close says %v", err)
	}
	c.crashes = append(c.crashes, crash{disk.image(), len(c.changes)})
	for i, crash := range c.crashes {
		o.Engine, o.Follow = crash.disk.factory(), false
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := contents(s)
		if err != nil || !slices.ContainsFunc(c.states[crash.done:], func(want map[string]string) bool { return maps.Equal(got, want) }) {
			t.Errorf("after crash %d of %d holds %v, %v, want one of %v", i, len(c.crashes), got, err, c.states[crash.done:])
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClientsDuringAMove stops a move at each of its writes, which succeed or fail, while
// a client changes a key that moves. The client's changes are never lost nor undone, not
// even by a crash at any write.
func TestClientsDuringAMove(t *testing.T) {
	key, stays, other := nth(0), nth(1), nth(2*movedKeys)
	clients := map[string]*clash{
		"reads":                {changes: []change{reads}},
		"writes another":       {changes: []change{writes(stays), writes(other)}},
		"writes":               {changes: []change{writes(key)}, waits: true},
		"writes twice":         {changes: []change{writes(key), writes(key)}, waits: true},
		"removes":              {changes: []change{removes(key)}, waits: true},
		"removes and writes":   {changes: []change{removes(key), writes(key)}, waits: true},
		"puts":                 {changes: []change{executes(key, stays)}, waits: true},
		"executes":             {changes: []change{executes(stays, key)}, waits: true},
		"puts beside another":  {changes: []change{executes(key, other)}, waits: true},
		"removes two":          {changes: []change{removes(key), executes(other, nth(2))}, waits: true},
		"assigns back":         {changes: []change{assignsBack}},
		"assigns back, writes": {changes: []change{assignsBack, writes(key)}, waits: true},
		"assigns back, removes": {
			changes: []change{assignsBack, removes(key), executes(nth(2), stays)}, waits: true,
		},
	}
	for name, client := range clients {
		for _, at := range []pause{{0, false}, {0, true}, {1, false}, {1, true}} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/fails=%v", name, at, fails), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := &clash{at: at, fails: fails, changes: client.changes, waits: client.waits}
						c.run(t)
					})
				})
			}
		}
	}
}
