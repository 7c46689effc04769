package failuretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	sdk "github.com/samya-db/samya/client"
	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
)

const (
	// nodeCallers is how many callers the load has, nodeRate how many requests a second
	// they make together.
	nodeCallers = 40
	nodeRate    = 200
	// nodeLimit is the limit of the entity: the callers want a fourth more.
	nodeLimit = 400
	// nodeKept is how many answers are kept to be asked for again.
	nodeKept = 300
)

// nodeLoad is the load on a site of several nodes.
type nodeLoad struct {
	client *sdk.Client
	ledger *ledger.Ledger
	stop   func()
	began  time.Time

	mu      sync.Mutex
	waits   []*firstAnswer
	kept    []keptAnswer
	counts  map[string]int
	longest time.Duration
	faults  []string
}

// firstAnswer waits for the answer to a call that began after a time.
type firstAnswer struct {
	after time.Time
	got   chan time.Time
}

// keptAnswer is a call that was answered.
type keptAnswer struct {
	id     string
	kind   ledger.Kind
	tokens int64
}

// startLoad begins the load, which the test's end stops too.
func (s *nodeSite) startLoad(seed uint64) *nodeLoad {
	s.t.Helper()
	cfg := sdk.Config{Region: nodeSiteName, FixedTargets: true, Timeout: 15 * time.Second, RepeatTime: time.Minute}
	for _, n := range s.nodes {
		cfg.Targets = append(cfg.Targets, sdk.Target{Address: n.GRPC, Region: nodeSiteName})
	}
	client, err := sdk.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	l := &nodeLoad{client: client, ledger: ledger.New(nil), began: time.Now(), counts: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range nodeCallers {
		all.Go(func() { l.run(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	s.t.Cleanup(func() {
		l.stop()
		if err := client.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return l
}

// run makes calls at an even rate until ctx ends. A call that has begun ends.
func (l *nodeLoad) run(ctx context.Context, rng *rand.Rand) {
	const every = nodeCallers * time.Second / nodeRate
	const share = nodeLimit * 5 / 4 / nodeCallers
	var held int64
	next := time.Now().Add(time.Duration(rng.Int64N(int64(every))))
	for wan.Wait(ctx, time.Until(next)) == nil {
		next = next.Add(every)
		if late := time.Since(next); late > time.Second {
			next = next.Add(late) // no burst
		}
		if held > share || held > 0 && rng.IntN(2) == 0 {
			n := 1 + rng.Int64N(held)
			held -= n
			l.call(ledger.Release, n)
			continue
		}
		n := 1 + rng.Int64N(5)
		if l.call(ledger.Acquire, n) {
			held += n
		}
	}
}

// call makes a call, goes on with it while its outcome is unknown, and books the outcome.
func (l *nodeLoad) call(kind ledger.Kind, tokens int64) (done bool) {
	began := time.Now()
	op := l.ledger.Invoke(entity, kind, tokens)
	var id string
	ask := func(before error) (err error) {
		if kind == ledger.Acquire {
			var g sdk.Grant
			g, err = l.client.Acquire(context.Background(), entity, tokens, sdk.Wait(0), sdk.Resume(before))
			id = g.RequestID
			return err
		}
		var r sdk.Receipt
		r, err = l.client.Release(context.Background(), entity, tokens, sdk.Resume(before))
		id = r.RequestID
		return err
	}
	err := ask(nil)
	resumed := false
	for errors.Is(err, sdk.ErrOutcomeUnknown) {
		of, _ := errors.AsType[*sdk.Error](err)
		if of.Attempt == 0 || !time.Now().Before(of.NotAfter) {
			l.fault("%s of %d has no outcome after %s: %v", kind, tokens, time.Since(began), err)
			return kind == ledger.Acquire
		}
		if !resumed {
			resumed = true
			op.Unknown()
			l.count("resumed")
		}
		err = ask(err)
	}
	outcome := ledger.Executed
	switch {
	case err == nil:
		l.answered(began, keptAnswer{id, kind, tokens})
	case errors.Is(err, sdk.ErrOutOfTokens) && kind == ledger.Acquire:
		outcome = ledger.Refused
		l.answered(began, keptAnswer{})
	default:
		outcome = ledger.Refused
		l.fault("%s of %d, begun %s ago: %v", kind, tokens, time.Since(began).Round(time.Millisecond), err)
	}
	if resumed {
		op.Resolve(outcome)
	} else {
		op.Return(outcome)
	}
	return outcome == ledger.Executed
}

// answered counts an answer, and wakes the waiters.
func (l *nodeLoad) answered(began time.Time, a keptAnswer) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, now.Sub(began))
	switch {
	case a.id == "":
		l.counts["out of tokens"]++
	case len(l.kept) < nodeKept:
		l.kept = append(l.kept, a)
	default:
		l.kept[l.counts["executed"]%nodeKept] = a
	}
	if a.id != "" {
		l.counts["executed"]++
	}
	waits := l.waits[:0]
	for _, w := range l.waits {
		if began.After(w.after) {
			w.got <- now
		} else {
			waits = append(waits, w)
		}
	}
	l.waits = waits
}

// first returns a channel with the time of the first answer to a call that begins after a
// time.
func (l *nodeLoad) first(after time.Time) <-chan time.Time {
	w := &firstAnswer{after, make(chan time.Time, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, w)
	return w.got
}

func (l *nodeLoad) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

func (l *nodeLoad) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts["faults"]++
	l.faults = append(l.faults, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// judge stops the load, and compares the books of the site with the books of the callers.
func (l *nodeLoad) judge(t *testing.T, c *client) {
	t.Helper()
	l.stop()
	for _, f := range l.faults[:min(len(l.faults), 20)] {
		t.Error(f)
	}
	if most := l.ledger.MaxAcquired(entity); most.Tokens > nodeLimit {
		t.Errorf("%d tokens were out, the limit is %d", most.Tokens, nodeLimit)
	}
	held := l.ledger.Held(entity)
	settled(t, nodeLimit, held, c)
	// A site that had lost an answered request would do it again.
	for _, a := range l.kept {
		var err error
		if a.kind == ledger.Acquire {
			_, err = c.acquire(t.Context(), a.id, a.tokens, 0)
		} else {
			_, err = c.release(t.Context(), a.id, a.tokens)
		}
		// A call that was made several times is known by a later attempt.
		if err != nil && apierr.FromGRPC(err).Reason != apierr.Superseded {
			t.Errorf("the repeat of %s %s of %d: %v", a.kind, a.id, a.tokens, err)
		}
	}
	settled(t, nodeLimit, held, c)
}
