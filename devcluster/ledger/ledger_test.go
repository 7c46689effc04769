package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/devcluster/ledger"
)

const entity = "acme/vm"

// clock hands out readings a second apart.
func clock() func() time.Time {
	t := time.Unix(0, 0)
	return func() time.Time {
		t = t.Add(time.Second)
		return t
	}
}

func TestAcquireCountsFromItsReturn(t *testing.T) {
	l := ledger.New(clock())
	op := l.Invoke(entity, ledger.Acquire, 7)
	if low, high := l.Bounds(entity); low != 0 || high != 7 {
		t.Errorf("bounds with the acquire under way = %d..%d, want 0..7", low, high)
	}
	if got := l.MaxAcquired(entity).Tokens; got != 0 {
		t.Errorf("max before the return = %d, want 0", got)
	}
	op.Return(ledger.Executed)
	if got, want := l.MaxAcquired(entity), (ledger.Peak{Tokens: 7, At: 2 * time.Second}); got != want {
		t.Errorf("max = %+v, want %+v", got, want)
	}
	if got := l.Held(entity); got != 7 {
		t.Errorf("held = %d, want 7", got)
	}
}

func TestRefusedAcquireCountsNothing(t *testing.T) {
	l := ledger.New(nil)
	l.Invoke(entity, ledger.Acquire, 7).Return(ledger.Refused)
	if low, high := l.Bounds(entity); low != 0 || high != 0 {
		t.Errorf("bounds = %d..%d, want 0..0", low, high)
	}
}

func TestReleaseCountsFromItsInvocation(t *testing.T) {
	l := ledger.New(nil)
	l.Invoke(entity, ledger.Acquire, 10).Return(ledger.Executed)
	release := l.Invoke(entity, ledger.Release, 4)
	if low, high := l.Bounds(entity); low != 6 || high != 10 {
		t.Errorf("bounds with the release under way = %d..%d, want 6..10", low, high)
	}
	l.Invoke(entity, ledger.Acquire, 3).Return(ledger.Executed)
	if got := l.MaxAcquired(entity).Tokens; got != 10 {
		t.Errorf("max = %d, want 10: the tokens under release may have been granted again", got)
	}
	release.Return(ledger.Refused)
	if got := l.MaxAcquired(entity).Tokens; got != 13 {
		t.Errorf("max after the release was refused = %d, want 13: its tokens never came back", got)
	}
}

func TestUnknownAcquireCountsOnceResolved(t *testing.T) {
	l := ledger.New(nil)
	op := l.Invoke(entity, ledger.Acquire, 5)
	op.Unknown()
	if got := l.Pending(entity); got.Unknown != 1 || got.AcquireTokens != 5 {
		t.Errorf("pending = %+v, want one unknown acquire of 5", got)
	}
	if got := l.MaxAcquired(entity).Tokens; got != 0 {
		t.Errorf("max while unknown = %d, want 0", got)
	}
	op.Resolve(ledger.Executed)
	if got := l.MaxAcquired(entity).Tokens; got != 5 {
		t.Errorf("max once resolved = %d, want 5", got)
	}
	if got := l.Pending(entity); got != (ledger.Pending{}) {
		t.Errorf("pending = %+v, want none", got)
	}
}

// TestPendingCountsEachKind: requests without an outcome are counted by kind, until the
// outcome is known.
func TestPendingCountsEachKind(t *testing.T) {
	l := ledger.New(nil)
	if got := l.Pending("acme/none"); got != (ledger.Pending{}) {
		t.Errorf("of an entity that was not heard of: %+v", got)
	}
	acquire, release := l.Invoke(entity, ledger.Acquire, 5), l.Invoke(entity, ledger.Release, 2)
	l.Invoke(entity, ledger.Release, 4).Return(ledger.Refused)
	release.Unknown()
	if got, want := l.Pending(entity), (ledger.Pending{Acquires: 1, AcquireTokens: 5, Releases: 1, ReleaseTokens: 2, Unknown: 1}); got != want {
		t.Errorf("pending = %+v, want %+v", got, want)
	}
	release.Resolve(ledger.Executed)
	acquire.Return(ledger.Refused)
	if got := l.Pending(entity); got != (ledger.Pending{}) {
		t.Errorf("pending = %+v, want none", got)
	}
}

// TestMaxTellsWhenItWasFirstReached: a sum that is reached again is no new maximum.
func TestMaxTellsWhenItWasFirstReached(t *testing.T) {
	l := ledger.New(clock())
	if got := l.MaxAcquired(entity); got != (ledger.Peak{}) {
		t.Errorf("max of an entity that was not heard of: %+v", got)
	}
	l.Invoke(entity, ledger.Acquire, 7).Return(ledger.Executed)
	first := l.MaxAcquired(entity)
	l.Invoke(entity, ledger.Release, 3).Return(ledger.Executed)
	l.Invoke(entity, ledger.Acquire, 3).Return(ledger.Executed)
	if got := l.MaxAcquired(entity); got != first {
		t.Errorf("max = %+v, was %+v", got, first)
	}
}

// TestOpTellsOfItself: an operation tells its request, and its time.
func TestOpTellsOfItself(t *testing.T) {
	l := ledger.New(clock())
	acquire, release := l.Invoke(entity, ledger.Acquire, 7), l.Invoke(entity, ledger.Release, 3)
	for op, want := range map[*ledger.Op]struct {
		kind   ledger.Kind
		name   string
		tokens int64
		at     time.Duration
	}{acquire: {ledger.Acquire, "acquire", 7, time.Second}, release: {ledger.Release, "release", 3, 2 * time.Second}} {
		if op.Kind() != want.kind || op.Kind().String() != want.name || op.Tokens() != want.tokens || op.Invoked() != want.at {
			t.Errorf("%v of %d tokens, invoked after %v; want %+v", op.Kind(), op.Tokens(), op.Invoked(), want)
		}
	}
}

func TestMisuseIsCaught(t *testing.T) {
	tests := map[string]func(op *ledger.Op){
		"returned twice":            func(op *ledger.Op) { op.Return(ledger.Executed); op.Return(ledger.Executed) },
		"unknown after its return":  func(op *ledger.Op) { op.Return(ledger.Executed); op.Unknown() },
		"unknown twice":             func(op *ledger.Op) { op.Unknown(); op.Unknown() },
		"returned after unknown":    func(op *ledger.Op) { op.Unknown(); op.Return(ledger.Executed) },
		"resolved without unknown":  func(op *ledger.Op) { op.Resolve(ledger.Executed) },
		"resolved twice":            func(op *ledger.Op) { op.Unknown(); op.Resolve(ledger.Refused); op.Resolve(ledger.Refused) },
		"resolved after its return": func(op *ledger.Op) { op.Return(ledger.Executed); op.Resolve(ledger.Executed) },
	}
	for name, misuse := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(ledger.New(nil).Invoke(entity, ledger.Acquire, 1))
		})
	}
	for _, tokens := range []int64{0, -1} {
		t.Run(fmt.Sprint(tokens, " tokens"), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			ledger.New(nil).Invoke(entity, ledger.Release, tokens)
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	l := ledger.New(nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				l.Invoke(entity, ledger.Acquire, 3).Return(ledger.Executed)
				op := l.Invoke(entity, ledger.Release, 2)
				op.Unknown()
				op.Resolve(ledger.Executed)
			}
		})
	}
	wg.Wait()
	if got, want := l.Held(entity), int64(8*500); got != want {
		t.Errorf("held = %d, want %d", got, want)
	}
	if got := l.MaxAcquired(entity).Tokens; got < 8*500 {
		t.Errorf("max = %d, below what is held at the end", got)
	}
}

// event is an operation in the oracle's full history, with the steps of its invocation
// and of its end, -1 for not yet.
type event struct {
	entity       string
	kind         ledger.Kind
	tokens       int64
	invoked, end int
	outcome      ledger.Outcome
}

// outAt is the oracle: it adds up the whole history at a step.
func outAt(history []*event, entity string, step int) int64 {
	var sum int64
	for _, e := range history {
		ended := e.end >= 0 && e.end <= step
		switch {
		case e.entity != entity:
		case e.kind == ledger.Acquire && ended && e.outcome == ledger.Executed:
			sum += e.tokens
		case e.kind == ledger.Release && e.invoked <= step && (!ended || e.outcome == ledger.Executed):
			sum -= e.tokens
		}
	}
	return sum
}

func TestAgainstFullHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entities := []string{"a", "b"}
		l := ledger.New(nil)
		var history []*event
		type open struct {
			op      *ledger.Op
			event   *event
			unknown bool
		}
		var under []*open
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for step := range steps {
			action := rapid.IntRange(0, 3).Draw(t, "action")
			if len(under) == 0 {
				action = 0
			}
			switch action {
			case 0, 1:
				e := &event{
					entity:  rapid.SampledFrom(entities).Draw(t, "entity"),
					kind:    rapid.SampledFrom([]ledger.Kind{ledger.Acquire, ledger.Acquire, ledger.Release}).Draw(t, "kind"),
					tokens:  rapid.Int64Range(1, 9).Draw(t, "tokens"),
					invoked: step, end: -1,
				}
				history = append(history, e)
				under = append(under, &open{op: l.Invoke(e.entity, e.kind, e.tokens), event: e})
			case 2, 3:
				i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
				o := under[i]
				if !o.unknown && rapid.Bool().Draw(t, "lost") {
					o.op.Unknown()
					o.unknown = true
					continue
				}
				o.event.end = step
				o.event.outcome = rapid.SampledFrom([]ledger.Outcome{ledger.Executed, ledger.Refused}).Draw(t, "outcome")
				if o.unknown {
					o.op.Resolve(o.event.outcome)
				} else {
					o.op.Return(o.event.outcome)
				}
				under = append(under[:i], under[i+1:]...)
			}
		}
		for _, entity := range entities {
			var highest, pending int64
			for step := range steps {
				highest = max(highest, outAt(history, entity, step))
			}
			for _, o := range under {
				if o.event.entity == entity {
					pending += o.event.tokens
				}
			}
			last := outAt(history, entity, steps)
			if got := l.MaxAcquired(entity).Tokens; got != highest {
				t.Fatalf("entity %s: max = %d, the history says %d", entity, got, highest)
			}
			if low, high := l.Bounds(entity); low != last || high != last+pending {
				t.Fatalf("entity %s: bounds = %d..%d, the history says %d..%d", entity, low, high, last, last+pending)
			}
		}
	})
}
