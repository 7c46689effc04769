package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// halting is a cluster with a tree, acme above acme/vm, and an entity beside the tree,
// free.
func halting(t *testing.T, strategy string) *rig {
	t.Helper()
	r := newRig(t, 3, func(c *core.Config) { c.Strategy = strategy })
	r.create("acme", 300)
	r.below("acme/vm", "acme", 300)
	r.create("free", 300)
	r.wantCode(r.acquire("a", "acme/vm", 10, "durable"), answer.OK)
	return r
}

// TestHalt: a broken balance halts the tree of its entity. The site serves other
// entities, and after a restart the tree as well, from the books of the last commit
// before.
func TestHalt(t *testing.T) {
	r := halting(t, "transfer")
	// Others hear nothing of the waiting acquire, so they keep their tokens.
	r.cut["a"] = true
	waits := r.acquireAsync("a", "acme/vm", 290, "waits", 60_000)
	limit := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "acme/vm", Limit: 250, RequestID: "limit", Wait: 60_000})
	r.unanswered(waits)
	r.unanswered(limit)

	// A single commit: acquires of the tree and of another entity, and then the bug.
	calls := []input.Call{r.nextCall(), r.nextCall(), r.nextCall()}
	for i, entity := range []string{"acme/vm", "free", "acme/vm"} {
		if i == 2 {
			r.cores["a"].Overdraw("acme")
		}
		r.cores["a"].Step(r.now, &input.Acquire{Call: calls[i], Entity: entity, Tokens: 5, Request: key(id("same commit", i))})
	}
	r.sent = nil
	r.drain("a")
	r.cut["a"] = false
	for i, want := range []answer.Code{answer.Unknown, answer.Unknown, answer.Halted} {
		r.wantCode(r.answer(calls[i]), want)
	}
	r.wantCode(r.answer(waits), answer.Halted)
	r.wantCode(r.answer(limit), answer.Unknown)
	if n := r.count(event.BooksBroken); n != 1 || r.cores["a"].Status().Halted != 2 {
		t.Errorf("%d events, %d entities halted, want 1 and 2", n, r.cores["a"].Status().Halted)
	}

	// The site no longer serves the tree. It serves other entities, with their part of
	// the commit.
	r.wantCode(r.acquire("a", "acme/vm", 1, "later"), answer.Halted)
	r.wantCode(r.acquire("a", "acme/vm", 10, "durable"), answer.Halted)
	r.wantCode(r.release("a", "acme", 1, "release"), answer.Halted)
	r.wantCode(r.answer(r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "acme", Limit: 9, RequestID: "again"})), answer.Halted)
	r.wantCode(r.acquire("a", "free", 5, id("same commit", 1)), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"free": 5})
	// Other sites get tokens from each other.
	all := r.acquireAsync("b", "acme/vm", 180, "of two", 60_000)
	r.advance(30_000)
	r.wantCode(r.answer(all), answer.OK)
	for _, e := range r.sent {
		if e.From() == "a" && (e.Entity == "acme" || e.Entity == "acme/vm") {
			t.Errorf("a halted entity's message is sent: %+v", e)
		}
	}

	r.restart("a")
	r.advance(5000)
	r.wantNet("a", map[string]core.Tokens{"acme/vm": 10})
	r.wantNet("a", map[string]core.Tokens{"acme": 10})
	r.wantNet("a", map[string]core.Tokens{"free": 5})
	r.wantCode(r.acquire("a", "acme/vm", 10, "durable"), answer.OK)
	r.wantCode(r.acquire("a", "free", 5, id("same commit", 1)), answer.OK)
	for _, name := range []string{"acme", "acme/vm"} {
		limit := r.view("a", name).Limit
		if left, offered, net := r.books(name); left+offered+net != limit {
			t.Errorf("%s: %d left, %d set aside, %d out; the limit is %d", name, left, offered, net, limit)
		}
	}
}

// TestHaltOfPledges: books that have set aside other tokens than their protocols have
// pledged are broken. The site finds them before it stores any of them.
func TestHaltOfPledges(t *testing.T) {
	r := halting(t, "instance")
	r.acquireAsync("a", "free", 200, "hunt", 60_000)
	for end := r.now.Tick + 1000; r.view("b", "free").Offered == 0; {
		if r.advance(1); r.now.Tick > end {
			t.Fatal("b pledges nothing")
		}
	}
	r.cores["b"].Unpledge("free")
	r.drain("b")
	if r.count(event.BooksBroken) != 1 {
		t.Error("the pledge that was forgotten went unnoticed")
	}
	r.wantCode(r.acquire("b", "free", 1, "later"), answer.Halted)
	r.wantCode(r.acquire("b", "acme/vm", 1, "other"), answer.OK)
	r.restart("b")
	r.advance(60_000)
	if left, offered, net := r.books("free"); left+offered+net != 300 || offered != 0 {
		t.Errorf("%d left, %d set aside, %d out; the limit is 300", left, offered, net)
	}
}

// TestHaltOfPartners: a request takes tokens of several trees in a commit in which a tree
// of them breaks. The request is stored for none of them.
func TestHaltOfPartners(t *testing.T) {
	r := halting(t, "transfer")
	r.create("far", 300)
	all := r.nextCall()
	r.cores["a"].Step(r.now, &input.AcquireAll{
		Call: all, Request: key("all"), Parts: []input.Part{{Entity: "free", Tokens: 7}, {Entity: "acme/vm", Tokens: 7}},
	})
	r.cores["a"].Overdraw("acme/vm")
	r.drain("a")
	r.wantCode(r.answer(all), answer.Unknown)
	r.wantCode(r.acquire("a", "free", 1, "partner"), answer.Halted)
	r.wantCode(r.acquire("a", "far", 1, "far"), answer.OK)
	r.restart("a")
	r.advance(2000)
	r.wantNet("a", map[string]core.Tokens{"free": 0})
	r.wantNet("a", map[string]core.Tokens{"acme/vm": 10})
	again := r.nextCall()
	r.step("a", &input.AcquireAll{
		Call: again, Request: key("all"), Parts: []input.Part{{Entity: "free", Tokens: 7}, {Entity: "acme/vm", Tokens: 7}},
	})
	r.wantCode(r.answer(again), answer.OK)
	r.wantNet("a", map[string]core.Tokens{"free": 7})
}

// TestHaltOfLeases: a lease of a halted entity can be neither renewed nor committed, and
// gives its tokens back after a restart.
func TestHaltOfLeases(t *testing.T) {
	r := halting(t, "transfer")
	leased := r.nextCall()
	r.step("a", &input.Acquire{
		Call: leased, Entity: "acme/vm", Tokens: 20, Request: key("lease"), Lease: &input.LeaseTerms{ID: "lease", TTL: 10_000},
	})
	r.wantCode(r.answer(leased), answer.OK)
	r.cores["a"].Overdraw("acme/vm")
	r.drain("a")
	for _, in := range []input.Input{
		&input.RenewLease{Call: "renew", Lease: key("lease")}, &input.CommitLease{Call: "commit", Lease: key("lease")},
	} {
		r.step("a", in)
	}
	r.wantCode(r.answer("renew"), answer.Halted)
	r.wantCode(r.answer("commit"), answer.Halted)
	// The entity above is halted as well.
	r.wantCode(r.acquire("a", "acme", 1, "above"), answer.Halted)
	r.advance(20_000)
	r.restart("a")
	r.advance(20_000)
	r.wantNet("a", map[string]core.Tokens{"acme/vm": 10})
}

// TestHaltAndTheCatalogue: a halted entity can be deleted, and an entity created below it
// is halted as well. A change that would move tokens of the tree ends the site.
func TestHaltAndTheCatalogue(t *testing.T) {
	r := halting(t, "transfer")
	r.cores["a"].Overdraw("free")
	r.drain("a")
	r.below("free/new", "free", 10)
	r.wantCode(r.acquire("a", "free/new", 1, "new"), answer.Halted)
	r.wantCode(r.acquire("b", "free/new", 1, "new at b"), answer.OK)
	r.wantCode(r.changed("b", input.Change{Kind: input.DeleteEntity, Name: "free", Subtree: true, RequestID: "delete"}), answer.OK)
	if n := r.cores["a"].Status().Halted; n != 0 {
		t.Errorf("%d entities are halted, want 0", n)
	}

	r.cores["a"].Overdraw("acme")
	r.drain("a")
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "is halted") {
			t.Errorf("a move of a halted tree: %v", p)
		}
	}()
	r.create("elsewhere", 300)
	r.move("b", "acme/vm", "elsewhere", "move")
}

// TestOneWriter: only package books writes the balances. Only books.Of makes books, and
// no literal of stripes or books has balances.
func TestOneWriter(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if s, ok := left.(*ast.SelectorExpr); !ok || s.Sel.Name != "books" {
						continue
					} else if call, ok := n.Rhs[min(i, len(n.Rhs)-1)].(*ast.CallExpr); !ok || !isBooks(call.Fun, "Of") {
						t.Errorf("%v: books are assigned by something else than books.Of", set.Position(n.Pos()))
					}
					made++
				}
			case *ast.CompositeLit:
				if isBooks(n.Type, "Books", "Stripe") && len(n.Elts) > 0 {
					t.Errorf("%v: balances are written by a literal", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if made != 2 {
		t.Errorf("books are made at %d places, want 2: of a new entity, and of a restored one", made)
	}
}

// isBooks reports whether an expression is any of the given names of package books.
func isBooks(x ast.Expr, names ...string) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "books" && slices.Contains(names, s.Sel.Name)
}
