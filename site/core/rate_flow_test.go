package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// flowing starts a cluster of three sites with an entity "llm" of 30 tokens, 10 at each
// site, with other terms than windows.
func flowing(t *testing.T, terms rates.Terms, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) {
		c.Trigger, c.Admission = "reactive", "refuse"
		if tweak != nil {
			tweak(c)
		}
	})
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "llm", Limit: 30, RequestID: "create", Rate: terms})
	r.advance(2000)
	if a := r.answer(call); a.Code != answer.OK || a.View().Rate != terms {
		t.Fatalf("creating a rate quota: %+v, %+v", a, a.View().Rate)
	}
	return r
}

var (
	bucket  = rates.Terms{Kind: rates.Bucket, Count: 1, Unit: rates.Minute, Volatile: true}
	sliding = rates.Terms{Kind: rates.Sliding, Count: 64, Unit: rates.Second, Volatile: true}
)

// wantFlow checks the books of a site, by its answer to a read.
func (r *rig) wantFlow(site core.SiteID, left, net core.Tokens) {
	r.t.Helper()
	if v := r.view(site, "llm"); v.Left != left || v.Net != net || v.Ends != 0 {
		r.t.Errorf("%s has %d left and %d out, ends %d, want %d and %d", site, v.Left, v.Net, v.Ends, left, net)
	}
}

// TestBucketFills: the tokens of a bucket come back evenly, at the rate of the site's share,
// and no more than it holds.
func TestBucketFills(t *testing.T) {
	r := flowing(t, bucket, nil)
	r.wantCode(r.acquire("a", "llm", 10, "all"), answer.OK)
	r.wantCode(r.acquire("a", "llm", 1, "more"), answer.OutOfTokens)
	r.advance(5998)
	r.wantFlow("a", 0, 10)
	r.advance(3)
	r.wantFlow("a", 1, 9)
	r.advance(24_000)
	r.wantCode(r.acquire("a", "llm", 5, "what came"), answer.OK)
	r.wantCode(r.acquire("a", "llm", 1, "more again"), answer.OutOfTokens)
	r.advance(200_000)
	r.wantFlow("a", 10, 0)
}

// TestSlidingComesBack: each token of a sliding window comes back a period after its grant.
func TestSlidingComesBack(t *testing.T) {
	r := flowing(t, sliding, nil)
	r.wantCode(r.acquire("a", "llm", 4, "first"), answer.OK)
	r.advance(30_000)
	r.wantCode(r.acquire("a", "llm", 6, "second"), answer.OK)
	r.advance(33_999)
	r.wantFlow("a", 0, 10)
	r.advance(1001)
	r.wantFlow("a", 4, 6)
	r.advance(30_000)
	r.wantFlow("a", 10, 0)
}

// TestFlowsAtOtherSites: tokens that were not used may be used at once where they are sent,
// and come back there.
func TestFlowsAtOtherSites(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding} {
		for _, strategy := range []string{"transfer", "instance"} {
			t.Run(string(terms.Kind)+"/"+strategy, func(t *testing.T) {
				r := flowing(t, terms, func(c *core.Config) { c.Strategy, c.Admission = strategy, "wait" })
				r.wantCode(r.acquire("a", "llm", 10, "own"), answer.OK)
				more := r.acquireAsync("a", "llm", 6, "more", 4000)
				r.advance(3000)
				r.wantCode(r.answer(more), answer.OK)
				if left, offered, net := r.books("llm"); left+net != 30 || offered != 0 || net < 14 {
					t.Errorf("%d left, %d set aside, %d out", left, offered, net)
				}
				r.advance(70_000)
				if left, _, net := r.books("llm"); left != 30 || net != 0 {
					t.Errorf("after a period %d left, %d out", left, net)
				}
			})
		}
	}
}

// TestVolatile: a volatile rate quota writes nothing for a grant. A site that starts anew
// takes all its tokens for granted; they come back by the clock.
func TestVolatile(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding, {Kind: rates.Window, Count: 1, Unit: rates.Minute, Volatile: true}} {
		for _, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/durable %t", terms.Kind, lasting), func(t *testing.T) {
				terms := terms
				terms.Volatile = !lasting
				r := flowing(t, terms, nil)
				r.advance(core.Tick(60_000 - r.now.Wall%60_000))
				r.view("a", "llm") // begins the window
				r.wantCode(r.acquire("a", "llm", 1, "first"), answer.OK)
				written := r.written["a"]
				r.wantCode(r.acquire("a", "llm", 3, "use"), answer.OK)
				r.wantCode(r.acquire("a", "llm", 3, "use"), answer.OK) // a repeat
				r.wantFlowLeft("a", 6)
				if got := r.written["a"] - written; (got == 0) == lasting {
					t.Errorf("%d transactions were written", got)
				}
				r.restart("a")
				if lasting {
					r.wantFlowLeft("a", 6)
				} else {
					r.wantFlowLeft("a", 0)
				}
				r.advance(1)
				r.wantCode(r.acquire("a", "llm", 7, "after the start"), answer.OutOfTokens)
				r.advance(66_000)
				r.wantCode(r.acquire("a", "llm", 10, "later"), answer.OK)
			})
		}
	}
}

func (r *rig) wantFlowLeft(site core.SiteID, left core.Tokens) {
	r.t.Helper()
	if v := r.view(site, "llm"); v.Left != left || v.Left+v.Net != 10 {
		r.t.Errorf("%s has %d left and %d out, want %d left", site, v.Left, v.Net, left)
	}
}

// TestLeasesOfFlows: unused tokens of a lease come back as far as they have not come back by
// the clock, and none after a restart.
func TestLeasesOfFlows(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := flowing(t, terms, nil)
			r.wantCode(r.lease("a", "llm", 8, "estimate", 200_000), answer.OK)
			if a := r.commit("a", "estimate", 3, "actual"); a.Code != answer.OK || a.Returned != 5 {
				t.Errorf("%+v", a)
			}
			r.wantFlow("a", 7, 3)
			r.advance(70_000)
			r.wantCode(r.lease("a", "llm", 10, "long", 200_000), answer.OK)
			r.advance(70_000)
			r.wantFlow("a", 10, 0)
			r.wantCode(r.acquire("a", "llm", 10, "all"), answer.OK)
			if a := r.commit("a", "long", 1, "too late"); a.Code != answer.OK || a.Tokens != 1 || a.Returned != 0 {
				t.Errorf("%+v", a)
			}
			r.wantFlow("a", 0, 10)
			r.advance(70_000)
			r.wantCode(r.lease("a", "llm", 4, "over a start", 100_000), answer.OK)
			r.restart("a")
			r.advance(1)
			if a := r.commit("a", "over a start", 1, "after the start"); a.Code != answer.OK || a.Returned != 0 {
				t.Errorf("%+v", a)
			}
		})
	}
	t.Run("half of a bucket", func(t *testing.T) {
		r := flowing(t, bucket, nil)
		r.wantCode(r.lease("a", "llm", 10, "estimate", 200_000), answer.OK)
		r.advance(24_001)
		r.wantFlow("a", 4, 6)
		if a := r.commit("a", "estimate", 2, "actual"); a.Code != answer.OK || a.Returned != 4 {
			t.Errorf("%+v", a)
		}
		r.wantFlow("a", 8, 2)
	})
}

// TestWaitForABucket: an acquire waits for tokens to come back if they do so in time.
func TestWaitForABucket(t *testing.T) {
	r := flowing(t, bucket, func(c *core.Config) { c.Admission = "wait" })
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "llm", 10, "use "+string(site)), answer.OK)
	}
	short := r.acquireAsync("a", "llm", 4, "short", 20_000)
	long := r.acquireAsync("b", "llm", 4, "long", 40_000)
	r.advance(10_000)
	if a := r.answer(short); a.Code != answer.OutOfTokens || a.RetryAfter < 8000 || a.RetryAfter > 24_000 {
		t.Errorf("%+v", a)
	}
	r.advance(16_000)
	r.wantCode(r.answer(long), answer.OK)
}

// TestBequestOfABucket: a bucket's tokens out come back at the heir.
func TestBequestOfABucket(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			terms := terms
			terms.Count, terms.Unit = 1, rates.Hour
			r := flowing(t, terms, func(c *core.Config) { c.Retention = leavingRetention })
			r.wantCode(r.acquire("c", "llm", 10, "all"), answer.OK)
			r.drainSite("b", "c", "a")
			r.advance(20_000)
			if v := r.view("a", "llm"); v.Left+v.Net != 20 || v.Net == 0 {
				t.Errorf("a has %+v", v)
			}
			r.advance(3_700_000)
			r.wantFlow("a", 20, 0)
		})
	}
}

// TestOffersDoNotRefill: tokens set aside for an instance fill no bucket here, as the
// instance may have given them to another site already.
func TestOffersDoNotRefill(t *testing.T) {
	r := flowing(t, bucket, func(c *core.Config) { c.Strategy, c.Admission = "instance", "wait" })
	r.wantCode(r.acquire("a", "llm", 4, "a uses some"), answer.OK)
	r.wantCode(r.acquire("b", "llm", 10, "b uses all"), answer.OK)
	r.advance(3000)
	r.loses = func(e *message.Envelope) bool { return e.Message.Kind == avantan.Accept }
	r.acquireAsync("b", "llm", 6, "more", 100_000)
	r.advance(500)
	before := r.view("a", "llm")
	if before.Offered < 1 || before.Net < 1 {
		t.Fatalf("a offers nothing: %+v", before)
	}
	// At its share without the offer, a token takes a minute over the share.
	var came []core.Tick
	for net := before.Net; len(came) < 2; r.advance(100) {
		v := r.view("a", "llm")
		if v.Offered != before.Offered {
			t.Fatalf("the offer was %d, is %d", before.Offered, v.Offered)
		}
		if v.Net < net {
			net = v.Net
			came = append(came, r.now.Tick)
		}
	}
	if took, share := came[1]-came[0], before.Left+before.Net; took < core.Tick(60_000/share)-100 {
		t.Errorf("a token came back within %d ms, at a share of %d beside an offer of %d", took, share, before.Offered)
	}
}

// TestVolatileWindowsNeverGoBack: a window of a volatile rate quota begins durably.
func TestVolatileWindowsNeverGoBack(t *testing.T) {
	r := flowing(t, rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Minute, Volatile: true}, nil)
	r.ahead["a"] = 120_000
	r.wantCode(r.acquire("a", "llm", 10, "ahead"), answer.OK)
	r.ahead["a"] = 0
	r.restart("a")
	r.advance(60_000)
	r.wantCode(r.acquire("a", "llm", 1, "the window before"), answer.OutOfTokens)
	r.advance(60_000)
	r.wantCode(r.acquire("a", "llm", 1, "that window again"), answer.OutOfTokens)
	r.advance(60_000)
	r.wantCode(r.acquire("a", "llm", 10, "the next"), answer.OK)
}

// TestLostBucket: tokens of a lost site come back to empty buckets, as the lost site may
// have granted them just before.
func TestLostBucket(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := flowing(t, terms, func(c *core.Config) { c.Retention = leavingRetention })
			r.wantCode(r.acquire("c", "llm", 10, "the lost site's"), answer.OK)
			r.cut["c"] = true
			r.loseSite("a", "c")
			r.names = r.remaining("c")
			r.advance(20_000)
			cut := r.cutOf("llm")
			r.wantCode(r.answer(r.decided("a", cut.truth("llm", 0, "reconcile"))), answer.OK)
			left, _, net := r.books("llm")
			if left+net != 30 || net < 9 {
				t.Errorf("%d left, %d out", left, net)
			}
			r.advance(70_000)
			if left, _, net := r.books("llm"); left != 30 || net != 0 {
				t.Errorf("later %d left, %d out", left, net)
			}
		})
	}
}
