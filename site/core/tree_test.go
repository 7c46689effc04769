package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// below creates an entity below another.
func (r *rig) below(name, parent string, limit core.Tokens) {
	r.t.Helper()
	r.wantCode(r.changed("a", input.Change{
		Kind: input.CreateEntity, Name: name, Parent: parent, Limit: limit, RequestID: "create " + name,
	}), answer.OK)
}

// changed asks for a change and waits until it is answered and known everywhere.
func (r *rig) changed(site core.SiteID, ch input.Change) answer.Answer {
	r.t.Helper()
	call := r.changeAsync(site, ch)
	r.advance(2000)
	return r.answer(call)
}

func (r *rig) move(site core.SiteID, name, parent, id string) answer.Answer {
	r.t.Helper()
	return r.changed(site, input.Change{Kind: input.MoveEntity, Name: name, Parent: parent, RequestID: id})
}

// wantTree compares the tree of every site: each entity as name<parent:children.
func (r *rig) wantTree(want ...string) {
	r.t.Helper()
	for _, site := range r.names {
		call := r.nextCall()
		r.step(site, &input.List{Call: call, Count: 100})
		var got []string
		for _, v := range r.answer(call).Details.Views {
			got = append(got, fmt.Sprintf("%s<%s:%d", v.Name, v.Parent, v.Children))
		}
		if !slices.Equal(got, want) {
			r.t.Errorf("%s has %v, want %v", site, got, want)
		}
	}
}

func TestAnswersOfChangesOfTheTree(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("org", 100)
	for i := range core.MaxDepth - 1 {
		parent := fmt.Sprint("d", i)
		if i == 0 {
			parent = "org"
		}
		r.below(fmt.Sprint("d", i+1), parent, 10)
	}
	r.create("top", 50)
	r.below("leaf", "top", 5)
	org, top := r.view("b", "org"), r.view("c", "top")
	create := func(name, parent, id string) input.Change {
		return input.Change{Kind: input.CreateEntity, Name: name, Parent: parent, Limit: 3, RequestID: id}
	}
	move := func(name, parent, id string) input.Change {
		return input.Change{Kind: input.MoveEntity, Name: name, Parent: parent, RequestID: id}
	}
	expecting := func(ch input.Change, generation uint64) input.Change {
		ch.Expected = generation
		return ch
	}
	remove := func(name string, subtree bool, id string) input.Change {
		return input.Change{Kind: input.DeleteEntity, Name: name, Subtree: subtree, RequestID: id}
	}
	for _, tc := range []struct {
		name string
		at   core.SiteID
		ch   input.Change
		want answer.Code
	}{
		{"below nothing", "a", create("x", "nobody", "1"), answer.NoParent},
		{"below itself", "a", create("x", "x", "2"), answer.NoParent},
		{"too deep", "b", create("x", "d7", "3"), answer.TooDeep},
		{"exists", "b", create("leaf", "nobody", "4"), answer.Exists},
		{"at the greatest depth", "b", create("x", "d6", "5"), answer.OK},
		{"again", "c", create("x", "d6", "5"), answer.OK},
		{"id of another parent", "c", create("x", "d5", "5"), answer.Reused},
		{"id of no parent", "c", create("x", "", "5"), answer.Reused},
		{"parent of a deletion", "a", input.Change{Kind: input.DeleteEntity, Name: "x", Parent: "d6", RequestID: "6"}, answer.Invalid},
		{"parent of a limit", "a", input.Change{Kind: input.SetLimit, Name: "x", Parent: "d6", RequestID: "6"}, answer.Invalid},
		{"subtree of a creation", "a", input.Change{Kind: input.CreateEntity, Name: "y", Subtree: true, RequestID: "6"}, answer.Invalid},
		{"move what is not there", "a", move("nobody", "org", "7"), answer.NotFound},
		{"move below nothing", "a", move("leaf", "nobody", "8"), answer.NoParent},
		{"move below itself", "a", move("org", "org", "9"), answer.Looped},
		{"move below its own", "a", move("org", "d7", "10"), answer.Looped},
		{"move too deep", "a", move("top", "d6", "11"), answer.TooDeep},
		{"move another generation", "a", expecting(move("leaf", "org", "12"), org.Generation), answer.Mismatch},
		{"move as deep as can be", "b", expecting(move("top", "d5", "13"), top.Generation), answer.OK},
		{"move there again", "b", move("top", "d5", "14"), answer.OK},
		{"repeat of a move", "c", expecting(move("top", "d5", "13"), top.Generation), answer.OK},
		{"id of a move elsewhere", "c", expecting(move("top", "d4", "13"), top.Generation), answer.Reused},
		{"move to the top", "c", move("top", "", "15"), answer.OK},
		{"move to the top again", "c", move("top", "", "16"), answer.OK},
		{"delete what others stand below", "a", remove("top", false, "17"), answer.HasChildren},
		{"id of another deletion", "a", remove("top", true, "17"), answer.Reused},
		{"delete a leaf", "a", remove("leaf", false, "18"), answer.OK},
		{"delete it now", "a", remove("top", false, "19"), answer.OK},
		{"delete a subtree", "a", remove("d6", true, "20"), answer.OK},
		{"create in its place", "a", create("d6", "org", "21"), answer.OK},
	} {
		if a := r.changed(tc.at, tc.ch); a.Code != tc.want {
			t.Errorf("%s: %+v, want %v", tc.name, a, tc.want)
		}
	}
	want := []string{"d1<org:1", "d2<d1:1", "d3<d2:1", "d4<d3:1", "d5<d4:0", "d6<org:0", "org<:2"}
	r.wantTree(want...)
	for _, site := range r.names {
		r.restart(site)
	}
	r.wantTree(want...)
	r.wantCode(r.changed("c", create("x", "d6", "5")), answer.OK)
	r.wantCode(r.changed("a", remove("org", true, "22")), answer.OK)
	r.wantTree()
}

// TestAMoveTakesItsTokens: at each site, tokens out of an entity are out of its new
// ancestors, and no longer out of the old.
func TestAMoveTakesItsTokens(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("org", 300)
	r.below("p", "org", 90)
	r.below("q", "org", 30)
	r.create("e", 600)
	r.below("f", "e", 6)
	r.wantCode(r.acquire("a", "e", 15, "1"), answer.OK)
	r.wantCode(r.acquire("b", "e", 5, "2"), answer.OK)
	r.wantCode(r.release("c", "e", 4, "3"), answer.OK)
	want := func(name string, left, net [3]core.Tokens) {
		t.Helper()
		for i, site := range r.names {
			if v := r.view(site, name); v.Left != left[i] || v.Net != net[i] {
				t.Errorf("%s has %d left of %s and %d out, want %d and %d", site, v.Left, name, v.Net, left[i], net[i])
			}
		}
	}
	e := [3]core.Tokens{15, 5, -4}
	step := func(name, parent, id string) {
		t.Helper()
		a := r.move("b", name, parent, id)
		r.wantCode(a, answer.OK)
		if v := a.View(); v.Name != name || v.Parent != parent || v.Limit == 0 || v.Version != 1 {
			t.Errorf("the answer to the move is %+v", v)
		}
		want("e", [3]core.Tokens{185, 195, 204}, e)
	}
	step("e", "p", "m1")
	want("p", [3]core.Tokens{15, 25, 34}, e)
	want("org", [3]core.Tokens{85, 95, 104}, e)
	// The others pay the debt at a, and the tokens out there stay there.
	step("e", "q", "m2")
	want("p", [3]core.Tokens{30, 30, 30}, [3]core.Tokens{})
	want("org", [3]core.Tokens{85, 95, 104}, e)
	r.advance(20_000)
	left, offered, net := r.books("q")
	if left+offered != 14 || net != 16 || r.view("a", "q").Left < 0 {
		t.Errorf("q has %d left, %d offered, %d out; a has %d left", left, offered, net, r.view("a", "q").Left)
	}
	for _, site := range r.names {
		r.restart(site)
	}
	step("e", "", "m3")
	want("org", [3]core.Tokens{100, 100, 100}, [3]core.Tokens{})
	if left, offered, net := r.books("q"); left+offered != 30 || net != 0 {
		t.Errorf("q has %d left, %d offered, %d out", left, offered, net)
	}
	// Tokens out of a deleted entity are out of nothing.
	step("e", "org", "m4")
	want("org", [3]core.Tokens{85, 95, 104}, e)
	r.wantCode(r.changed("c", input.Change{Kind: input.DeleteEntity, Name: "e", Subtree: true, RequestID: "d"}), answer.OK)
	want("org", [3]core.Tokens{100, 100, 100}, [3]core.Tokens{})
	r.wantTree("org<:2", "p<org:0", "q<org:0")
}

// TestBooksOfAMoveHaveBounds: trusted releases cannot pile up in the books above.
func TestBooksOfAMoveHaveBounds(t *testing.T) {
	const most = core.Tokens(1 << 56)
	r := newRig(t, 1, nil)
	r.create("p", input.MaxTokens)
	for i := range 3 {
		name := id("e", i)
		r.create(name, 0)
		for n, more := 0, true; more; n++ {
			more = r.release("a", name, input.MaxTokens, fmt.Sprint(name, n)).Code == answer.OK
		}
		r.wantCode(r.move("a", name, "p", "move "+name), answer.OK)
		if v := r.view("a", "p"); v.Left+v.Net != input.MaxTokens-v.Surplus || v.Left > most || v.Net < -most {
			t.Errorf("%d moved: %+v", i+1, v)
		}
	}
}

func TestRestoredTreesAreChecked(t *testing.T) {
	records := func(parents ...uint64) stored.Restored {
		var from stored.Restored
		for i, p := range parents {
			name := id("e", i+1)
			from.Entities = append(from.Entities, stored.Entity{Name: name, Generation: uint64(i + 1), Limit: 5, Initial: 5, Version: 1, Parent: p})
			from.Books = append(from.Books, stored.Books{Name: name, Generation: uint64(i + 1), Left: 5})
		}
		return from
	}
	twice := records(0, 0, 1)
	twice.Entities[1].Generation, twice.Books[1].Generation = 3, 3
	for name, tc := range map[string]struct {
		from stored.Restored
		want string
	}{
		"none":      {records(0, 0), ""},
		"deep":      {records(2, 3, 4, 5, 6, 7, 8, 0), ""},
		"too deep":  {records(2, 3, 4, 5, 6, 7, 8, 9, 0), `"e-1": 8 stand above it`},
		"missing":   {records(0, 7), `"e-2": its parent, of generation 7, is missing`},
		"itself":    {records(0, 2), `its parent "e-2" stands below it`},
		"loop":      {records(2, 3, 1), "stands below it"},
		"two alike": {twice, "the same generation, 3"},
	} {
		cfg := core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2))}
		_, err := core.New(cfg, tc.from)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestSnapshotsOfTheCatalogueAreChecked(t *testing.T) {
	deep := `{"name":"e","generation":1}`
	for i := range core.MaxDepth {
		deep += fmt.Sprintf(`,{"name":"e%d","generation":%d,"parent":%d}`, i, i+2, i+1)
	}
	for name, snapshot := range map[string]string{
		"too deep":     deep,
		"no name":      `{"generation":1}`,
		"no number":    `{"name":"e"}`,
		"a name twice": `{"name":"e","generation":1},{"name":"e","generation":2}`,
		"number twice": `{"name":"e","generation":1},{"name":"f","generation":1}`,
		"no parent":    `{"name":"e","generation":1,"parent":2}`,
		"itself":       `{"name":"e","generation":1,"parent":1}`,
		"a loop":       `{"name":"e","generation":1,"parent":2},{"name":"f","generation":2,"parent":1}`,
	} {
		r := newRig(t, 1, nil)
		r.create("stays", 3)
		if err := r.cores["a"].InstallCatalogue([]byte(`{"whole":{"entities":[` + snapshot + `]}}`)); err == nil {
			t.Errorf("%s: it was installed", name)
		}
		r.wantTree("stays<:0")
	}
}
