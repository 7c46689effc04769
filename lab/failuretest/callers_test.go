package failuretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/wan"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// work starts the callers of a round. They settle requests without an outcome and repeat
// acknowledged requests before they make the load.
func (v *victim) work(ctx context.Context, all *sync.WaitGroup, load phase) {
	const callers = 6
	for range callers {
		all.Go(func() {
			v.read(ctx)
			for ctx.Err() == nil {
				if !v.settleOne(ctx) && !v.checkOne(ctx) {
					v.move(ctx, load)
				}
			}
		})
	}
	for _, c := range v.chains {
		all.Go(func() {
			c.ask(ctx, v)
			for ctx.Err() == nil && load == changes {
				c.step(ctx, v)
			}
		})
	}
	// Callers of the other sites give back tokens that the victim granted, and take some,
	// so that tokens circulate.
	for range 2 {
		all.Go(func() {
			for wan.Wait(ctx, 3*time.Millisecond) == nil {
				v.moveElsewhere(ctx, load)
			}
		})
	}
}

// read waits until the victim answers, and reads the victim's tokens left.
func (v *victim) read(ctx context.Context) {
	resp, err := v.clients[0].GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity}, grpc.WaitForReady(true))
	if err != nil {
		return // it was hit before
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answered, v.left = true, resp.GetUsage().GetShares()[0].GetLeft()
}

// take removes an element of a list; ok is false if the list is empty.
func (v *victim) take(list *[]given) (g given, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(*list); n > 0 {
		g, *list = (*list)[n-1], (*list)[:n-1]
		return g, true
	}
	return given{}, false
}

func (v *victim) putBack(list *[]given, g given) {
	v.mu.Lock()
	defer v.mu.Unlock()
	*list = append(*list, g)
}

// settleOne repeats a request without an outcome; it returns false if there is none.
func (v *victim) settleOne(ctx context.Context) bool {
	g, ok := v.take(&v.unknown)
	if !ok {
		return false
	}
	again := repeat(ctx, g.client, g.answer)
	if !binds(again) {
		v.putBack(&v.unknown, g)
		return true
	}
	v.book(given{g.client, again})
	return true
}

// binds reports whether the site has to give an answer again.
func binds(a answer) bool { return a.reason == "" || a.reason == apierr.OutOfTokens }

// checkOne asks again for an answer that the victim gave before it was hit. A site that
// lost the request would execute the repeat, perhaps with the same answer. So checkOne
// first sends another request under the id, which only a site that knows the id refuses.
// It returns false if there is nothing to check.
func (v *victim) checkOne(ctx context.Context) bool {
	g, ok := v.take(&v.unchecked)
	if !ok {
		return false
	}
	other := g.answer
	other.asked++
	probe, again := repeat(ctx, g.client, other), answer{reason: apierr.Canceled}
	if probe.reason == apierr.RequestIDReused {
		again = repeat(ctx, g.client, g.answer)
	}
	switch {
	case again == g.answer:
		v.saw(g.client, again)
	case binds(probe) || binds(again) || probe.reason == apierr.EntityNotFound || again.reason == apierr.EntityNotFound:
		v.lose("%s answered %+v; the repeat %+v, and another request under its id %+v", g.client.site.Name, g.answer, again, probe)
	default:
		v.putBack(&v.unchecked, g) // the site is going down, or too busy
	}
	return true
}

func (v *victim) lose(format string, args ...any) {
	v.t.Errorf(format, args...)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts.lost++
}

func (v *victim) saw(c *client, a answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c == v.clients[0] {
		v.answered = true
		if a.reason == "" {
			v.left = a.left
		}
	}
}

// move makes a request of the load at the victim.
func (v *victim) move(ctx context.Context, load phase) {
	a := answer{kind: ledger.Acquire, asked: 1 + rand.Int64N(3)}
	v.mu.Lock()
	v.next++
	a.id = fmt.Sprintf("%s-%d", v.prefix, v.next)
	switch {
	case load == redistributions && rand.IntN(3) == 0:
		// More than the victim has left, and at most the tokens not held.
		a.asked = min(max(v.left, 0)+1+rand.Int64N(50), max(1, victimLimit-v.held))
	case load == releases && v.held >= a.asked || v.held >= victimLimit*3/4:
		a.kind = ledger.Release
		v.held -= a.asked
	}
	v.mu.Unlock()
	v.send(ctx, v.clients[0], a)
}

// moveElsewhere makes a request at another site.
func (v *victim) moveElsewhere(ctx context.Context, load phase) {
	a := answer{kind: ledger.Acquire, asked: 1 + rand.Int64N(20)}
	v.mu.Lock()
	v.next++
	a.id = fmt.Sprintf("%s-%d", v.prefix, v.next)
	if v.held > 100 && (load != releases || v.held > victimLimit/2) {
		a.kind, a.asked = ledger.Release, 1+rand.Int64N(v.held/4)
		v.held -= a.asked
	}
	v.mu.Unlock()
	v.send(ctx, v.clients[1+rand.IntN(len(v.clients)-1)], a)
}

// send makes a request and books its answer. The request waits for tokens for less time
// than the site needs to be up again.
func (v *victim) send(ctx context.Context, c *client, a answer) {
	if c == v.clients[0] {
		v.book(given{c, send(ctx, c, a, 300*time.Millisecond)})
		return
	}
	// The other sites stay up: the victim's end does not lose their answers.
	v.book(given{c, send(context.WithoutCancel(ctx), c, a, 300*time.Millisecond)})
}

// book counts an answer, and keeps a request without an answer to be settled.
func (v *victim) book(g given) {
	if binds(g.answer) {
		v.saw(g.client, g.answer)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	a := g.answer
	release := a.kind == ledger.Release
	switch {
	case !binds(a) && a.reason.NothingDone():
		if release {
			v.held += a.asked
		}
		return
	case !binds(a):
		v.counts.unknown++
		v.unknown = append(v.unknown, g)
		return
	case a.reason != "":
		v.counts.refused++
	case release:
		v.counts.released++
	default:
		v.counts.granted++
		v.held += a.tokens
	}
	v.given = append(v.given, g)
	if g.client == v.clients[0] {
		v.unchecked = append(v.unchecked, g)
	}
}

// until repeats a call until the call reports nothing to do, or ctx ends.
func until(ctx context.Context, one func(context.Context) bool) {
	for ctx.Err() == nil {
		if !one(ctx) {
			return
		}
	}
}
