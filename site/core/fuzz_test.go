package core

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/site/core/stored"
)

// FuzzChanges: a change in a value or a snapshot of another site is refused or takes
// effect, whatever it holds. A core then starts on the stored state.
func FuzzChanges(tf *testing.F) {
	f := testfuzz.On(tf)
	for _, s := range []string{
		`[{"kind":"create","name":"f","limit":10,"request_id":"c","body":2}]`,
		`[{"kind":"delete","name":"e","generation":1,"request_id":"d"},{"kind":"set-mode","mode":"star","request_id":"m"}]`,
		`{"missed":[{"Number":3,"Instance":1,"Change":{"kind":"delete","name":"e","request_id":"d"}}]}`,
		`{"missed":[{"Number":3,"Instance":1,"Change":{"kind":"create","name":"","limit":-5}}]}`,
		`{"whole":{"generation":7,"numbered":2,"mode":{},"entities":[{"name":"g","generation":7,"limit":5}],"changes":[]}}`,
		`{"whole":{"entities":[{"name":"e","generation":1},{"name":"e","generation":2},{"name":"","generation":9,"limit":-1}]}}`,
		`{"whole":{"numbered":9,"changes":[{"Number":1},{"Number":1},{"Number":8}]}}`,
		`{"request_id":"r","body":1,"limit":900,"expected":1}`,
		`{"limit":-900,"version":2,"results":[{"request_id":"r"},{"request_id":"r"}]}`,
		`null`, `[]`, `{}`, `[null]`, `{"whole":null,"missed":[{}]}`, `[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, take := range map[string]func(c *Core, e *entity){
			"a change of the catalogue": func(c *Core, _ *entity) {
				if v := (&avantan.Value{Change: raw}); c.cat.CanApply(v) == nil {
					c.cat.Apply(1, v)
				}
			},
			"a snapshot of the catalogue": func(c *Core, _ *entity) { _ = c.cat.Install(1, raw) }, // may refuse
			"a change of a limit": func(_ *Core, e *entity) {
				if r, err := e.classify(raw); err == nil {
					e.settleLimit(r)
				}
			},
			"a snapshot of an entity": func(c *Core, e *entity) { _ = (&entityLedger{c: c.rebalancing, e: e}).Install(1, raw) }, // may refuse
		} {
			if err := takesEffect(take); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// takesEffect lets a core with an entity take something in, and starts a core on the
// state that the first core then stores.
func takesEffect(take func(c *Core, e *entity)) error {
	cfg := Config{Self: "a", Members: []SiteID{"a", "b", "c"}, Rand: rand.New(rand.NewPCG(1, 2))}
	from := stored.Restored{
		Catalogue: &stored.Catalogue{Generation: 1},
		Entities:  []stored.Entity{{Name: "e", Generation: 1, Initial: 1000, Limit: 1000, Version: 1}},
		Books:     []stored.Books{{Name: "e", Generation: 1, Left: 500}},
	}
	c, err := New(cfg, from)
	if err != nil {
		return err
	}
	e := c.space.find("e")
	take(c, e)
	var out Effects
	c.Drain(&out)
	stored := stored.Restored{
		Catalogue: from.Catalogue, Entities: out.Records.Entities, Books: out.Records.Books, Changes: out.Records.Changes,
	}
	if out.Records.Catalogue != nil {
		stored.Catalogue = out.Records.Catalogue
	}
	seen := make(map[string]bool)
	for _, r := range stored.Entities {
		if seen[r.Name] {
			return errors.New("an entity is stored twice: " + r.Name)
		}
		seen[r.Name] = true
	}
	// Records from before are still stored, unless they changed.
	if e != nil && c.space.find("e") == e {
		if !seen["e"] {
			stored.Entities = append(stored.Entities, from.Entities[0])
			stored.Books = append(stored.Books, from.Books[0])
		} else if len(out.Records.Books) < len(out.Records.Entities) {
			stored.Books = append(stored.Books, from.Books[0])
		}
	}
	again, err := New(cfg, stored)
	if err != nil {
		return err
	}
	if got, want := again.space.len(), c.space.len(); got != want {
		return errors.New("another number of entities is restored")
	}
	return nil
}
