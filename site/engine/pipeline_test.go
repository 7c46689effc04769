package engine_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/engine"
)

// told is a Receiver of many calls.
type told struct {
	mu     sync.Mutex
	calls  []*engine.Call
	got    []uint64
	stops  int
	refuse int
	// leases has it ask for leases, which no partition serves.
	leases bool
}

// Receive implements engine.Receiver.
func (r *told) Receive(c *engine.Call, a answer.Answer, err error) engine.Flusher {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, engine.ErrStopped):
		r.stops++
	case a.Code != answer.OK:
		r.refuse++
	default:
		r.got = append(r.got, number(c.Input.(*input.Acquire)))
	}
	return nil
}

// acquire asks for a token.
func (r *told) acquire(c *engine.Call, n uint64) input.Input {
	in := acquire(1, n, 0)(c)
	if a := in.(*input.Acquire); r.leases {
		a.Lease = &input.LeaseTerms{ID: strconv.FormatUint(n, 10), TTL: 1000}
		a.Request = attempt.KeyOf(a.Lease.ID)
	}
	return in
}

// number is the number of the request that made an acquire.
func number(a *input.Acquire) uint64 {
	if a.Lease == nil {
		return binary.BigEndian.Uint64(a.Request[:])
	}
	n, _ := strconv.ParseUint(a.Lease.ID, 10, 64)
	return n
}

func (r *told) answers() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// ask starts n acquires of a token each, with ids from first on.
func (r *told) ask(t *testing.T, e *engine.Engine, first, n uint64) {
	t.Helper()
	calls := make([]*engine.Call, n)
	for i := range calls {
		c := &engine.Call{To: r}
		c.Input = r.acquire(c, first+uint64(i))
		calls[i] = c
	}
	r.calls = append(r.calls, calls...)
	if err := e.Start(calls); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// upTo are the numbers below n.
func upTo(n uint64) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i)
	}
	return all
}

// rich is data of 10,000 tokens.
var rich = stored.Restored{
	Entities: []stored.Entity{{Name: "e", Generation: 1, Initial: 30_000, Limit: 30_000, Version: 1}},
	Books:    []stored.Books{{Name: "e", Generation: 1, Left: 10_000}},
}

// TestStepsDuringACommit: inputs that come while a commit is under way are handled then,
// and all of them are in the next commit. Effects of the commit before leave meanwhile,
// in order.
func TestStepsDuringACommit(t *testing.T) { duringACommit(t, true) }

// TestServesDuringACommit is TestStepsDuringACommit with requests that partitions serve.
func TestServesDuringACommit(t *testing.T) { duringACommit(t, false) }

func duringACommit(t *testing.T, leases bool) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, r := &world{gate: make(chan error)}, &told{leases: leases}
		e, stop := runOn(t, w, 0, rich)
		r.ask(t, e, 0, 300)
		if n := e.Waiting(); n != 0 {
			t.Fatalf("%d wait though nothing was under way", n)
		}
		r.ask(t, e, 300, 10)
		if n := e.Waiting(); n != 10 {
			t.Fatalf("%d wait, want few left to wait for the commit", n)
		}
		r.ask(t, e, 310, 290)
		if st, err := e.Status(t.Context()); err != nil || st.Requests != 600 || e.Waiting() != 0 {
			t.Fatalf("during the commit %d requests are handled and %d wait, %v", st.Requests, e.Waiting(), err)
		}
		if got := r.answers(); len(got) > 0 {
			t.Fatalf("%d answers before the first commit", len(got))
		}
		w.gate <- nil
		synctest.Wait()
		// The first commit may begin before all of the first requests have come.
		if got := r.answers(); len(got) == 0 || len(got) > 300 || !slices.Equal(got, upTo(uint64(len(got)))) {
			t.Fatalf("after the first commit: %v", got)
		}
		if got := w.logged(); !slices.Equal(got, []string{"begin", "end", "begin"}) {
			t.Fatalf("the second commit is to begin beside the answers: %v", got)
		}
		r.ask(t, e, 600, 40)
		w.gate <- nil
		synctest.Wait()
		if got := r.answers(); !slices.Equal(got, upTo(600)) {
			t.Fatalf("after the second commit: %v", got)
		}
		w.gate <- nil
		synctest.Wait()
		if got := r.answers(); !slices.Equal(got, upTo(640)) {
			t.Fatalf("after the third commit: %v", got)
		}
		if st := e.Inspect(); leases != (st.Served == 0) {
			t.Errorf("partitions served %d", st.Served)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFailureWithMoreGathered: effects gathered beside a commit that fails do not leave.
// Effects that were durable before have left.
func TestFailureWithMoreGathered(t *testing.T) {
	for _, leases := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			t.Helper()
			w, r := &world{gate: make(chan error)}, &told{leases: leases}
			e, stop := runOn(t, w, 0, rich)
			r.ask(t, e, 0, 1)
			w.gate <- nil
			synctest.Wait()
			r.ask(t, e, 1, 299)
			r.ask(t, e, 300, 300)
			w.gate <- nil
			synctest.Wait()
			r.ask(t, e, 600, 300)
			broken := errors.New("no space left")
			w.gate <- broken
			synctest.Wait()
			if got := r.answers(); !slices.Equal(got, upTo(300)) || r.stops != 600 || r.refuse != 0 {
				t.Errorf("%d answered, %d told of the stop, %d refused", len(got), r.stops, r.refuse)
			}
			if err := e.Start(r.calls[:1]); !errors.Is(err, engine.ErrStopped) {
				t.Errorf("a later call: %v", err)
			}
			if got := w.logged(); !slices.Equal(got, []string{"begin", "end", "begin", "end", "begin", "failed"}) {
				t.Errorf("order %v", got)
			}
			if err := stop(); !errors.Is(err, broken) {
				t.Errorf("Run returned %v", err)
			}
		})
	}
}

// TestCancelDuringACommit: a call cancelled while its commit is under way is told
// nothing. The calls beside it are told.
func TestCancelDuringACommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, r := &world{gate: make(chan error)}, new(told)
		e, stop := runOn(t, w, 0, rich)
		r.ask(t, e, 0, 3)
		if !e.Cancel(r.calls[1]) || e.Cancel(r.calls[1]) {
			t.Error("a call that is open is cancelled once")
		}
		w.gate <- nil
		synctest.Wait()
		if got := r.answers(); !slices.Equal(got, []uint64{0, 2}) {
			t.Errorf("answered %v", got)
		}
		if e.Cancel(r.calls[0]) {
			t.Error("a call is cancelled that was answered")
		}
		close(w.gate)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if r.stops > 0 {
			t.Errorf("%d told of the stop", r.stops)
		}
	})
}

// TestAStalledCommitBoundsWhatIsServed: partitions serve a bounded number of requests
// while a commit takes for ever.
func TestAStalledCommitBoundsWhatIsServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, r := &world{gate: make(chan error)}, new(told)
		const inbox, most = 100, 1 << 14
		// There are tokens for all requests.
		all := stored.Restored{Entities: slices.Clone(rich.Entities), Books: slices.Clone(rich.Books)}
		all.Books[0].Left = 4 * most
		e, stop := runOn(t, w, inbox, all)
		r.ask(t, e, 0, 1)
		taken := 0
		for ; taken < 2*most; taken += inbox {
			calls := make([]*engine.Call, inbox)
			for i := range calls {
				calls[i] = &engine.Call{To: r}
				calls[i].Input = acquire(1, uint64(1+taken+i), 0)(calls[i])
			}
			if err := e.Start(calls); errors.Is(err, engine.ErrBusy) {
				break
			}
		}
		if taken < most || taken > most+2*inbox {
			t.Errorf("%d were taken", taken)
		}
		close(w.gate)
		synctest.Wait()
		if got, refused := len(r.answers()), r.refuse; got != 1+taken || refused > 0 {
			t.Errorf("%d granted and %d refused of %d", got, refused, 1+taken)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAStalledCommitBoundsWhatComes: the engine takes a bounded number of inputs while a
// commit takes for ever.
func TestAStalledCommitBoundsWhatComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w, r := &world{gate: make(chan error)}, &told{leases: true}
		const inbox, most = 100, 1 << 14
		e, stop := runOn(t, w, inbox, rich)
		r.ask(t, e, 0, 1)
		taken := 0
		for ; taken < 2*most; taken += inbox {
			calls := make([]*engine.Call, inbox)
			for i := range calls {
				calls[i] = &engine.Call{To: r}
				calls[i].Input = r.acquire(calls[i], uint64(1+taken+i))
			}
			if err := e.Start(calls); errors.Is(err, engine.ErrBusy) {
				break
			}
		}
		if taken < most || taken > most+2*inbox {
			t.Errorf("%d were taken", taken)
		}
		close(w.gate)
		synctest.Wait()
		if got, refused := len(r.answers()), r.refuse; got != 10_000 || got+refused != 1+taken {
			t.Errorf("%d granted and %d refused of %d", got, refused, 1+taken)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
