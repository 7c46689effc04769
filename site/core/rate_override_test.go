package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// rate has a rate quota created.
func (r *rig) rate(name string, limit core.Tokens, terms rates.Terms) {
	r.t.Helper()
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: name, Limit: limit, RequestID: fmt.Sprint("create ", name, r.now.Tick), Rate: terms})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
}

// deletes has an entity deleted.
func (r *rig) deletes(name string) {
	r.t.Helper()
	call := r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: name, RequestID: fmt.Sprint("delete ", name, r.now.Tick)})
	r.advance(2000)
	r.wantCode(r.answer(call), answer.OK)
}

// gets is the number of tokens that all sites together grant of a name at once.
func (r *rig) gets(name, id string) (sum core.Tokens) {
	r.t.Helper()
	for _, site := range r.names {
		call := r.nextCall()
		r.step(site, &input.Acquire{Call: call, Entity: name, Tokens: 1000, Least: 1, Request: key(id + string(site))})
		if a := r.answer(call); a.Code == answer.OK {
			sum += a.Tokens
		}
	}
	return sum
}

// without are the terms of an entity like those of a template.
func without(t rates.Terms) rates.Terms {
	t.Keys = false
	return t
}

// TestAnEntityInPlaceOfAKey: a key that was used up and the entity that takes its place grant
// together no more than the higher limit, and so do the entity and the key after it. Later
// each has its limit.
func TestAnEntityInPlaceOfAKey(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		for _, durable := range []bool{false, true} {
			for limit, more := range map[core.Tokens]core.Tokens{90: 60, 30: 0, 12: 0} {
				t.Run(fmt.Sprint(terms.Kind, " limit ", limit, " durable ", durable), func(t *testing.T) {
					r := templated(t, terms, 30, nil)
					if n := r.gets("api/x", "key"); n != 30 {
						t.Fatalf("the key has %d", n)
					}
					is := without(terms)
					is.Volatile = !durable
					r.rate("api/x", limit, is)
					// A bucket has filled for a moment.
					came := core.Tokens(0)
					if terms.Kind == rates.Bucket {
						came = limit / 15
					}
					if n := r.gets("api/x", "entity"); n < more || n > more+came {
						t.Errorf("with the key used up the entity has %d, want %d to %d", n, more, more+came)
					}
					r.restart("a")
					r.advance(1)
					if n := r.gets("api/x", "after a start"); n > came {
						t.Errorf("after a start the entity has %d", n)
					}
					r.advance(61_000)
					if n := r.gets("api/x", "later"); n != limit {
						t.Errorf("later the entity has %d, want %d", n, limit)
					}
					r.deletes("api/x")
					if n := r.gets("api/x", "key again"); n > 2 {
						t.Errorf("with the entity used up the key has %d", n)
					}
					r.rate("api/x", 30, is)
					if n := r.gets("api/x", "entity again"); n > 2 {
						t.Errorf("the entity, created anew, has %d", n)
					}
					r.deletes("api/x")
					r.advance(61_000)
					if n := r.gets("api/x", "key later"); n != 30 {
						t.Errorf("later the key has %d", n)
					}
				})
			}
		}
	}
}

// TestATemplateInPlaceOfKeys: keys of a template below another begin without tokens, and so do
// the keys of the upper template once the lower is gone. Other keys stay as they are.
func TestATemplateInPlaceOfKeys(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := templated(t, terms, 30, nil)
			if n := r.gets("api/x/1", "key"); n != 30 {
				t.Fatalf("the key has %d", n)
			}
			r.rate("api/x", 60, terms)
			if n := r.gets("api/x/1", "lower") + r.gets("api/x/2", "lower of another"); n > 4 {
				t.Errorf("keys of the lower template have %d", n)
			}
			r.advance(61_000)
			if n := r.gets("api/x/1", "lower later"); n != 60 {
				t.Errorf("later a key of the lower template has %d", n)
			}
			r.deletes("api/x")
			if n := r.gets("api/x/1", "upper") + r.gets("api/x/2", "upper of another") + r.gets("api/x", "upper of the name"); n > 6 {
				t.Errorf("keys of the upper template have %d", n)
			}
			if n := r.gets("api/xx/1", "beside"); n != 30 {
				t.Errorf("a key beside has %d", n)
			}
			r.wantCode(r.reset("a", "api/x/2"), answer.OK)
			if n := r.gets("api/x/2", "reset"); n < 9 || n > 12 {
				t.Errorf("after a reset at a site the key has %d", n)
			}
			r.advance(61_000)
			if n := r.gets("api/x/1", "upper later"); n != 30 {
				t.Errorf("later a key of the upper template has %d", n)
			}
		})
	}
}

// TestAnEntityOfLongWindows: an entity with windows longer than the template's is not without
// tokens until its next window.
func TestAnEntityOfLongWindows(t *testing.T) {
	r := templated(t, keyedWindow, 30, nil)
	r.rate("api/x", 3000, rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Month})
	if n := r.gets("api/x", "entity"); n != 2970 {
		t.Errorf("the entity has %d, want 2970", n)
	}
	// Below no template an entity begins with all its tokens.
	r.rate("apis/x", 30, without(keyedWindow))
	if n := r.gets("apis/x", "beside"); n != 30 {
		t.Errorf("an entity beside has %d", n)
	}
}

// TestAnEntityInPlaceOfAKeyBySnapshot: a site that has missed the creation, and learns of all
// entities at once, counts what it has granted of the key.
func TestAnEntityInPlaceOfAKeyBySnapshot(t *testing.T) {
	r := templated(t, keyedWindow, 30, func(c *core.Config) { c.KeepChanges, c.Retention, c.Skew = 1, 5000, 1000 })
	r.cut["c"] = true
	r.advance(20_000)
	r.rate("api/x", 30, without(keyedWindow))
	for i := range 5 {
		r.rate(id("other", i), 30, without(keyedWindow))
	}
	r.advance(core.Tick(120_000 - r.now.Wall%60_000))
	r.wantCode(r.acquire("c", "api/x", 10, "key"), answer.OK)
	clear(r.cut)
	r.advance(15_000)
	if v := r.view("c", "api/x"); v.Left != 0 || v.Net != 10 {
		t.Errorf("%+v", v)
	}
	r.advance(60_000)
	if left, offered, net := r.books("api/x"); left != 30 || offered != 0 || net != 0 {
		t.Errorf("later %d left, %d offered, %d out", left, offered, net)
	}
}
