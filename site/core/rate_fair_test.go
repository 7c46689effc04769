package core_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// fairBucket is a bucket of 100 tokens a second.
var fairBucket = rates.Terms{Kind: rates.Bucket, Count: 1, Unit: rates.Second, Volatile: true}

// busy starts a cluster with a bucket of 100 tokens a second, which is used up.
func busy(t *testing.T, sites int, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, sites, tweak)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "calls", Limit: 100, RequestID: "create", Rate: fairBucket})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "calls", r.view(site, "calls").Left, "all of "+string(site)), answer.OK)
	}
	return r
}

// small has a site acquire token by token, with a wait.
func (r *rig) small(site core.SiteID, n int) input.Call {
	return r.acquireAsync(site, "calls", 1, id(fmt.Sprint("small ", site), n), 500)
}

// TestALargeAcquireOfABusyBucket: an acquire of many tokens that waits gets them, while others
// ask for more than comes back, token by token, and wait as well.
func TestALargeAcquireOfABusyBucket(t *testing.T) {
	for _, sites := range []int{1, 3} {
		t.Run(fmt.Sprint(sites, " sites"), func(t *testing.T) {
			r := busy(t, sites, nil)
			for i := range 200 {
				r.small("a", i)
				r.advance(5)
			}
			large := r.acquireAsync("a", "calls", 50, "large", 20_000)
			for i := range 2000 {
				r.small("a", 200+i)
				if r.advance(5); r.answered(large) {
					break
				}
			}
			r.wantCode(r.answer(large), answer.OK)
		})
	}
}

// TestSavedTokens: tokens that come back while a large acquire waits are saved for it. Others
// that come later wait, or are refused, also once their time is up.
func TestSavedTokens(t *testing.T) {
	r := busy(t, 1, nil)
	large := r.acquireAsync("a", "calls", 50, "large", 5000)
	waits := r.acquireAsync("a", "calls", 2, "waits", 5000)
	soon := r.acquireAsync("a", "calls", 3, "its time is up first", 200)
	r.advance(200)
	if a := r.answer(soon); a.Code != answer.OutOfTokens || a.Left != 0 {
		t.Errorf("%+v", a)
	}
	r.advance(100)
	a := r.acquire("a", "calls", 1, "does not wait")
	if a.Code != answer.OutOfTokens || a.Left != 0 || a.RetryAfter < 190 || a.RetryAfter > 210 {
		t.Errorf("%+v", a)
	}
	if v := r.view("a", "calls"); v.Left != 30 || v.Waiting != 2 {
		t.Errorf("%+v", v)
	}
	r.advance(200)
	r.unanswered(waits)
	r.advance(2)
	r.wantCode(r.answer(large), answer.OK)
	r.advance(20)
	r.wantCode(r.answer(waits), answer.OK)
	r.advance(10)
	r.wantCode(r.acquire("a", "calls", 1, "later"), answer.OK)
}

// TestNothingIsSavedInVain: no tokens are saved for an acquire that they cannot serve in time.
// If they go elsewhere meanwhile, others are served.
func TestNothingIsSavedInVain(t *testing.T) {
	r := busy(t, 1, nil)
	for _, wait := range []core.Tick{400, 499} {
		r.acquireAsync("a", "calls", 50, id("in vain", int(wait)), wait)
	}
	small := r.small("a", 1)
	r.advance(12)
	r.wantCode(r.answer(small), answer.OK)
	r.advance(500)
	r.wantCode(r.acquire("a", "calls", r.view("a", "calls").Left, "rest"), answer.OK)
	large := r.acquireAsync("a", "calls", 50, "large", 20_000)
	r.advance(250)
	lowered := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "calls", Limit: 52, RequestID: "lower"})
	small = r.small("a", 2)
	r.advance(300)
	r.wantCode(r.answer(lowered), answer.OK)
	r.unanswered(small)
	r.advance(190)
	r.wantCode(r.answer(small), answer.OK)
	r.unanswered(large)
}

// TestBusyCallers: callers that wait at a busy bucket get tokens in proportion to what they
// ask for, in large parts or small.
func TestBusyCallers(t *testing.T) {
	r := busy(t, 1, nil)
	got := map[core.Tokens]core.Tokens{}
	calls := map[input.Call]core.Tokens{}
	lots := rand.New(rand.NewPCG(1, 1))
	for i := range 20_000 {
		for _, tokens := range []core.Tokens{1, 5, 20} {
			// Each asks for 100 tokens a second.
			if lots.Int64N(10*int64(tokens)) == 0 {
				calls[r.acquireAsync("a", "calls", tokens, fmt.Sprint(tokens, " of ", i), 1000)] = tokens
			}
		}
		r.advance(1)
	}
	r.advance(1000)
	for call, tokens := range calls {
		if r.answer(call).Code == answer.OK {
			got[tokens] += tokens
		}
	}
	for tokens, sum := range got {
		if t.Logf("%d tokens in parts of %d", sum, tokens); sum < 500 || sum > 900 {
			t.Errorf("%d tokens in parts of %d, want about a third of 2000", sum, tokens)
		}
	}
}

// answered reports whether a call has its answer.
func (r *rig) answered(call input.Call) bool {
	_, done := r.answers[call]
	return done
}
