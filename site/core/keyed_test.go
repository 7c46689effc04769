package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

var (
	keyedBucket = rates.Terms{Kind: rates.Bucket, Count: 1, Unit: rates.Minute, Volatile: true, Keys: true}
	keyedWindow = rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Minute, Volatile: true, Keys: true}
)

// templated starts a cluster of three sites with a template "api" of 30 tokens, and begins a
// window.
func templated(t *testing.T, terms rates.Terms, limit core.Tokens, tweak func(*core.Config)) *rig {
	t.Helper()
	r := newRig(t, 3, tweak)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "api", Limit: limit, RequestID: "create", Rate: terms})
	r.advance(2000)
	if a := r.answer(call); a.Code != answer.OK || a.View().Rate != terms {
		t.Fatalf("creating a template: %+v", a)
	}
	r.advance(core.Tick(60_000 - r.now.Wall%60_000))
	return r
}

// wantKey checks the tokens left of a key at a site, by a read.
func (r *rig) wantKey(site core.SiteID, key string, left, net core.Tokens) {
	r.t.Helper()
	if v := r.view(site, key); v.Name != key || v.Left != left || v.Net != net {
		r.t.Errorf("%s has %d left and %d out of %q, want %d and %d", site, v.Left, v.Net, v.Name, left, net)
	}
}

// TestKeys: each key has the site's share, from its first use on, and regains it by the
// clock. Refusals send the caller to other sites.
func TestKeys(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := templated(t, terms, 30, nil)
			for _, key := range []string{"api/x", "api/y/z"} {
				for _, site := range []core.SiteID{"a", "b", "c"} {
					id := fmt.Sprint(key, site)
					r.wantCode(r.acquire(site, key, 10, id), answer.OK)
					a := r.acquire(site, key, 1, id+" more")
					if r.wantCode(a, answer.OutOfTokens); !a.Elsewhere || a.Lacking != key || a.RetryAfter < 1 || a.RetryAfter > 60_000 {
						t.Errorf("%+v", a)
					}
					r.wantCode(r.acquire(site, key, 10, id), answer.OK) // a repeat
					r.wantKey(site, key, 0, 10)
				}
			}
			r.wantKey("a", "api/new", 10, 0)
			r.wantCode(r.acquire("a", "api/x", 31, "beyond"), answer.ExceedsLimit)
			r.advance(60_001)
			r.wantKey("a", "api/x", 10, 0)
			r.wantCode(r.acquire("a", "api/x", 10, "later"), answer.OK)
		})
	}
}

// TestKeysOnly: nobody acquires tokens of a template, leases tokens of a key, or creates an
// entity that a key hides; an entity with the name of a key is an entity.
func TestKeysOnly(t *testing.T) {
	r := templated(t, keyedBucket, 30, nil)
	r.wantCode(r.acquire("a", "api", 1, "template"), answer.OfKey)
	r.wantCode(r.all("a", "templates", input.Part{Entity: "api/x", Tokens: 1}, input.Part{Entity: "api", Tokens: 1}), answer.OfKey)
	r.wantCode(r.lease("a", "api/x", 1, "lease", 5000), answer.OfKey)
	r.wantCode(r.acquire("a", "apis/x", 1, "other"), answer.NotFound)
	r.create("api/vip", 90)
	r.wantCode(r.acquire("a", "api/vip", 30, "vip"), answer.OK)
	r.wantKey("a", "api/x", 10, 0)
}

// TestKeysHome: all tokens of a small limit are at a single site.
func TestKeysHome(t *testing.T) {
	r := templated(t, keyedWindow, 23, nil)
	homes := 0
	for _, site := range []core.SiteID{"a", "b", "c"} {
		if a := r.acquire(site, "api/x", 23, "at "+string(site)); a.Code == answer.OK {
			homes++
		} else if !a.Elsewhere {
			t.Errorf("%+v", a)
		}
	}
	if homes != 1 {
		t.Errorf("%d sites granted all tokens of a key, want 1", homes)
	}
}

// TestKeysAfterStart: a site that starts anew takes all tokens of all keys for granted.
func TestKeysAfterStart(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := templated(t, terms, 30, nil)
			r.wantCode(r.acquire("a", "api/x", 4, "before"), answer.OK)
			r.restart("a")
			r.advance(1)
			r.wantKey("a", "api/x", 0, 10)
			r.wantCode(r.acquire("a", "api/new", 1, "after"), answer.OutOfTokens)
			r.advance(61_000)
			r.wantCode(r.acquire("a", "api/x", 10, "later"), answer.OK)
			r.restart("a")
			r.advance(121_000)
			r.wantCode(r.acquire("a", "api/y", 10, "unused since a start"), answer.OK)
		})
	}
}

// TestKeysOnce: an acquire that nobody repeats leaves no record, if it need not be durable.
func TestKeysOnce(t *testing.T) {
	r := templated(t, keyedBucket, 300, nil)
	before := r.cores["a"].Status().Requests
	for i := range 5 {
		call := r.nextCall()
		r.step("a", &input.Acquire{Call: call, Entity: "api/x", Tokens: 1, Request: key(fmt.Sprint(i)), Once: true})
		r.drain("a")
		r.wantCode(r.answer(call), answer.OK)
	}
	if n := r.cores["a"].Status().Requests - before; n != 0 {
		t.Errorf("%d records", n)
	}
	r.wantKey("a", "api/x", 95, 5)
}

// TestKeysInBatches: an atomic batch with keys takes all tokens or none, also of entities.
func TestKeysInBatches(t *testing.T) {
	r := templated(t, keyedBucket, 30, nil)
	r.create("plain", 30)
	parts := []input.Part{{Entity: "api/x", Tokens: 3}, {Entity: "plain", Tokens: 4}, {Entity: "api/x", Tokens: 2}, {Entity: "api/y", Tokens: 1}}
	r.wantCode(r.all("a", "first", parts...), answer.OK)
	r.wantCode(r.all("a", "first", parts...), answer.OK) // a repeat
	check := func(x, y, plain core.Tokens) {
		t.Helper()
		r.wantKey("a", "api/x", x, 10-x)
		r.wantKey("a", "api/y", y, 10-y)
		r.wantKey("a", "plain", plain, 10-plain)
	}
	check(5, 9, 6)
	a := r.all("a", "too many of a key", input.Part{Entity: "plain", Tokens: 1}, input.Part{Entity: "api/x", Tokens: 3}, input.Part{Entity: "api/x", Tokens: 3})
	if r.wantCode(a, answer.OutOfTokens); a.Lacking != "api/x" || !a.Elsewhere {
		t.Errorf("%+v", a)
	}
	check(5, 9, 6)
	a = r.all("a", "too many of an entity", input.Part{Entity: "api/x", Tokens: 1}, input.Part{Entity: "plain", Tokens: 7})
	if r.wantCode(a, answer.OutOfTokens); a.Lacking != "plain" || a.Elsewhere {
		t.Errorf("%+v", a)
	}
	check(5, 9, 6)
	r.wantCode(r.all("a", "keys alone", input.Part{Entity: "api/x", Tokens: 5}, input.Part{Entity: "api/y", Tokens: 9}), answer.OK)
	check(0, 0, 6)
}

// TestKeysBounded: where memory is short keys are dropped, come back with no more than they
// have, and others are not hurt for longer than a period.
func TestKeysBounded(t *testing.T) {
	r := templated(t, keyedBucket, 30, func(c *core.Config) { c.MaxKeys = 100 })
	for i := range 1000 {
		if a := r.acquire("a", fmt.Sprintf("api/%d", i), 1, fmt.Sprint(i)); a.Code != answer.OK {
			t.Fatalf("key %d: %+v", i, a)
		}
	}
	if n := r.cores["a"].Status().Keys; n > 100 {
		t.Errorf("%d keys", n)
	}
	if r.count(event.KeysDropped) == 0 {
		t.Error("no event tells that keys were dropped")
	}
	for _, key := range []string{"api/0", "api/new"} {
		// Nobody knows whether such a key was used in each generation that was dropped.
		if left := r.view("a", key).Left; left < 1 || left > 9 {
			t.Errorf("%d tokens of %q left", left, key)
		}
	}
	r.advance(120_000)
	r.wantKey("a", "api/new", 10, 0)
	if n := r.cores["a"].Status().Keys; n != 0 {
		t.Errorf("%d keys after two idle periods", n)
	}
}

// TestKeysMove: tokens of a template that come to a site are not granted there while the giver
// may have granted them, and an heir goes on with the keys.
func TestKeysMove(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := templated(t, terms, 30, nil)
			for _, site := range []core.SiteID{"a", "b", "c"} {
				r.wantCode(r.acquire(site, "api/x", 10, "all of "+string(site)), answer.OK)
			}
			r.drainSite("a", "c", "b")
			r.advance(4000)
			if v := r.view("b", "api"); v.Left+v.Net != 20 {
				t.Fatalf("the heir has %d left and %d out", v.Left, v.Net)
			}
			for _, key := range []string{"api/x", "api/y"} {
				most := core.Tokens(2)
				if key == "api/y" {
					most = 12
				}
				if v := r.view("b", key); v.Left > most {
					t.Errorf("the heir has %d of %q left", v.Left, key)
				}
			}
			r.advance(120_000)
			r.wantKey("b", "api/x", 20, 0)
			r.wantCode(r.acquire("b", "api/x", 20, "all of two"), answer.OK)
		})
	}
}

// TestKeysSetAside: tokens of a template that were set aside when the site starts anew come
// back within the window, and are granted of no key in it: nobody knows which had them.
func TestKeysSetAside(t *testing.T) {
	r := templated(t, keyedWindow, 30, nil)
	r.wantCode(r.acquire("a", "api/x", 10, "all"), answer.OK)
	r.changeAsync("b", input.Change{Kind: input.SetLimit, Name: "api", Limit: 60, RequestID: "raise"})
	for range 200 {
		if r.view("a", "api").Offered > 0 {
			break
		}
		r.advance(1)
	}
	if r.view("a", "api").Offered == 0 {
		t.Fatal("nothing was set aside")
	}
	r.restart("a")
	for range 400 {
		if v := r.view("a", "api"); v.Offered == 0 && v.Left > 0 {
			break
		}
		r.advance(50)
	}
	if v := r.view("a", "api"); v.Offered != 0 || v.Left == 0 {
		t.Fatalf("%d are left, %d set aside", v.Left, v.Offered)
	}
	r.wantCode(r.acquire("a", "api/x", 1, "again"), answer.OutOfTokens)
	r.advance(core.Tick(60_001 - r.now.Wall%60_000))
	r.wantCode(r.acquire("a", "api/x", 10, "in the next window"), answer.OK)
}

// TestKeysOfABatchStay: a batch takes all tokens that its keys were found to have, although a
// new key among them leaves no room for keys not used lately.
func TestKeysOfABatchStay(t *testing.T) {
	r := templated(t, keyedBucket, 30, func(c *core.Config) { c.MaxKeys = 2 })
	r.wantCode(r.acquire("a", "api/little", 1, "a token"), answer.OK)
	r.wantCode(r.acquire("a", "api/hog", 10, "all tokens"), answer.OK)
	a := r.all("a", "batch", input.Part{Entity: "api/new", Tokens: 1}, input.Part{Entity: "api/newer", Tokens: 1}, input.Part{Entity: "api/little", Tokens: 9})
	r.wantCode(a, answer.OK)
	if n := r.cores["a"].Status().Keys; n > 4 {
		t.Errorf("%d keys", n)
	}
	r.wantCode(r.acquire("a", "api/little", 1, "too many"), answer.OutOfTokens)
}

// TestKeysOfDeleted: the keys of a deleted template need no memory.
func TestKeysOfDeleted(t *testing.T) {
	r := templated(t, keyedBucket, 30, nil)
	r.wantCode(r.acquire("a", "api/x", 1, "x"), answer.OK)
	r.wantCode(r.change("a", input.DeleteEntity, "api", 0, "delete"), answer.OK)
	r.wantCode(r.acquire("a", "api/x", 1, "again"), answer.NotFound)
	if n := r.cores["a"].Status().Keys; n != 0 {
		t.Errorf("%d keys", n)
	}
}
