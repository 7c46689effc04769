package partitions_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/partitions"
)

// forest is two organisations of two teams of three leaves below a root, with the given
// tokens each.
func forest(tokens core.Tokens) (from stored.Restored, leaves []string) {
	from.Catalogue = new(stored.Catalogue)
	root := add(&from, "root", 0)
	for o := range 2 {
		org := add(&from, fmt.Sprintf("root/%d", o), root)
		for i := range 2 {
			team := add(&from, fmt.Sprintf("root/%d/%d", o, i), org)
			for j := range 3 {
				name := fmt.Sprintf("root/%d/%d/%d", o, i, j)
				add(&from, name, team)
				leaves = append(leaves, name)
			}
		}
	}
	for i := range from.Entities {
		from.Entities[i].Initial, from.Entities[i].Limit = tokens, tokens
		from.Books[i].Left = tokens
	}
	return from, leaves
}

// clientSession is a session whose requests below acked are answered.
type clientSession struct {
	next, acked atomic.Uint64
	answered    map[uint64]bool
}

// acknowledge notes an answer. One goroutine does at a time.
func acknowledge(sessions []clientSession, call input.Call) {
	var key attempt.Key
	switch in := call.(type) {
	case *input.Acquire:
		key = in.Request
	case *input.Release:
		key = in.Request
	}
	of, sequence, ok := key.Session()
	if !ok {
		return
	}
	s := &sessions[of[0]]
	if s.answered == nil {
		s.answered = make(map[uint64]bool)
	}
	acked := s.acked.Load()
	for s.answered[sequence] = true; s.answered[acked]; acked++ {
		delete(s.answered, acked)
	}
	s.acked.Store(acked)
}

// TestBooksUnderLoad has callers acquire and release on several goroutines while entities
// go to other partitions, are split and made whole, and are looked at alone. The books
// must agree with the answers, and every request has exactly one answer.
func TestBooksUnderLoad(t *testing.T) {
	for _, mode := range []sched.Mode{sched.Callers, sched.Workers} {
		t.Run([]string{"callers", "workers"}[mode], func(t *testing.T) {
			const callers, perCaller = 4, 3000
			// All may be handed over before there is anything to give back.
			from, leaves := forest(3 * callers * perCaller)
			c, err := core.New(core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2)), Admission: "refuse"}, from)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			clock := func() time.Duration { return time.Since(began) }
			now := func() input.Now {
				return input.Now{Tick: core.Tick(clock().Milliseconds()) + 1, Wall: 1_700_000_000_000}
			}
			var p *partitions.Partitions
			alone := make(chan input.Input, callers*perCaller)
			p, err = partitions.New(partitions.Options{
				Core: c, Count: 3, Mode: mode, Clock: clock, Policy: new(control.Policy), Now: now,
				Pass: func(in input.Input) { alone <- in },
			})
			if err != nil {
				t.Fatal(err)
			}
			w := &underLoad{t: t, out: make(map[string]core.Tokens)}
			// The callers from 1 on name requests in sessions, the last two in the same.
			sessions := make([]clientSession, callers)
			var load, rest sync.WaitGroup
			for i := range callers {
				load.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 5)) //nolint:gosec // small
					for n := range perCaller {
						in := &input.Acquire{Entity: leaves[rnd.IntN(len(leaves))], Tokens: core.Tokens(1 + rnd.IntN(3))}
						binary.BigEndian.PutUint32(in.Request[:], uint32(i*perCaller+n)) //nolint:gosec // small
						if of := min(i, callers-2); of > 0 {
							sequence := sessions[of].next.Add(1) - 1
							in.Request = attempt.OfSession(session.ID{byte(of)}, sequence)
							in.Acked = min(sequence, sessions[of].acked.Load())
						}
						in.Call = in
						if rnd.IntN(2) > 0 {
							back := w.something(rnd)
							if back != nil {
								r := &input.Release{Entity: back.Entity, Tokens: back.Tokens, Request: in.Request, Tries: in.Tries}
								r.Call = r
								if !p.Serve(now(), r) {
									alone <- r
								}
								continue
							}
						}
						if !p.Serve(now(), in) {
							alone <- in
						}
					}
				})
			}
			stop := make(chan struct{})
			drain := func() {
				p.Alone(func() {
					for {
						select {
						case in := <-alone:
							if mode == sched.Callers {
								p.Stepped(1)
							}
							c.Step(now(), in)
							continue
						default:
						}
						break
					}
					var e core.Effects
					c.Drain(&e)
					for _, r := range e.Replies {
						w.answered(r)
						acknowledge(sessions, r.Call)
					}
				})
			}
			rest.Go(func() {
				rnd := rand.New(rand.NewPCG(9, 9))
				for {
					select {
					case <-stop:
						return
					default:
					}
					switch e := from.Entities[rnd.IntN(len(from.Entities))].Name; rnd.IntN(6) {
					case 0, 1:
						if err := p.Assign(e, rnd.IntN(3)); err != nil {
							t.Error(err)
						}
					case 2:
						p.Switch()
					case 3:
						p.Alone(func() { p.Split(e, rnd.IntN(2) > 0) })
					default:
						drain()
					}
				}
			})
			load.Wait()
			close(stop)
			rest.Wait()
			p.Close()
			drain()
			w.check(c, from)
			st := p.Stats()
			t.Logf("%d served, %d across, %d passed", st.Served, st.Cross, st.Passed)
			if w.answers != callers*perCaller || st.Served+st.Passed != callers*perCaller || st.Served < callers*perCaller/10 {
				t.Errorf("%d answers, %d served, %d passed", w.answers, st.Served, st.Passed)
			}
		})
	}
}

// underLoad is the callers' knowledge.
type underLoad struct {
	t  *testing.T
	mu sync.Mutex
	// out are the tokens that callers hold, by leaf, and held the acquires that were
	// granted and not given back.
	out     map[string]core.Tokens
	held    []*input.Acquire
	answers int
}

// something is an acquire to be given back, nil if there is none.
func (w *underLoad) something(rnd *rand.Rand) *input.Acquire {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	i := rnd.IntN(len(w.held))
	a := w.held[i]
	w.held[i] = w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
	return a
}

func (w *underLoad) answered(r core.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers++
	switch in := r.Call.(type) {
	case *input.Acquire:
		if r.Answer.Code == answer.OK {
			w.out[in.Entity] += in.Tokens
			w.held = append(w.held, in)
		} else if r.Answer.Code != answer.OutOfTokens {
			w.t.Errorf("acquire: %+v", r.Answer)
		}
	case *input.Release:
		if r.Answer.Code != answer.OK {
			w.t.Errorf("release: %+v", r.Answer)
		}
		w.out[in.Entity] -= in.Tokens
	}
}

// check compares the books with the callers' knowledge.
func (w *underLoad) check(c *core.Core, from stored.Restored) {
	w.t.Helper()
	for _, e := range from.Entities {
		c.Step(input.Now{Tick: 1 << 30, Wall: 1_700_000_000_000}, &input.Read{Call: e.Name, Entity: e.Name})
	}
	var out core.Effects
	c.Drain(&out)
	for _, r := range out.Replies {
		v := r.Answer.View()
		var want core.Tokens
		for leaf, n := range w.out {
			if leaf == v.Name || len(leaf) > len(v.Name) && leaf[:len(v.Name)+1] == v.Name+"/" {
				want += n
			}
		}
		if v.Net != want || v.Left+v.Net != v.Limit || v.Left < 0 {
			w.t.Errorf("%s: net %d, want %d; %d left of %d", v.Name, v.Net, want, v.Left, v.Limit)
		}
	}
}
